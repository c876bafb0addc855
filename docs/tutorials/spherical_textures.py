"""Textures on the sphere"""

# %% A function on S² as a spline: centres spread over the sphere by repulsion, coefficients by least squares. More
# centres, more detail.

import torch

from liespline import SO3, GConv, Project, Sphere, SplineBasis, repulsion, uniform

torch.manual_seed(0)


def texture(n):
    x, y, z = n.unbind(-1)
    return torch.sin(4 * x + 2 * y) * torch.cos(5 * z) + 0.3 * torch.sin(12 * y)


points = torch.nn.functional.normalize(torch.randn(3000, 3, dtype=torch.float64), dim=-1)
for n in (50, 200, 800):
    basis = SplineBasis(repulsion(Sphere(), n))
    coefficients = basis.fit(points, texture(points))
    test = torch.nn.functional.normalize(torch.randn(1000, 3, dtype=torch.float64), dim=-1)
    error = (basis(test) @ coefficients - texture(test)).norm() / texture(test).norm()
    print(f"{n} centres: relative error {error:.3f}")
assert error < 0.05

# %% A layer on such functions lifts them to SO(3), where a rotation of the sphere only permutes features. There
# is no space axis, so `kernel_size` is None: features are `(B, C, N_h)`.

S = repulsion(Sphere(), 400)
R = uniform(SO3(), 24)
kernel = SplineBasis(repulsion(Sphere(), 12))
lift = GConv(1, 4, None, S, out_grid=R, h_basis=kernel).double()
features = lift(texture(S.elements).view(1, 1, -1))
print(features.shape)

# %% Rotate the texture by a rotation of the cube: the features are the same, in another order, up to what 400 samples
# of the sphere leave open. Their maximum over SO(3) does not change.

turn = R.elements[5]
rotated = lift(texture(SO3().pull(turn, S.elements)).view(1, 1, -1))
invariant = Project("max", R).double()
change = (invariant(rotated) - invariant(features)).norm() / invariant(features).norm()
print(f"change of the invariant features: {change:.4f}")
assert change < 0.02
