"""A group of your own: hyperbolic squeezes"""

# %% A squeeze stretches one axis of an image by e^t and shrinks the other by e^−t; it keeps areas. Squeezes are a
# group, and no library has them ready. Five methods are enough.

import torch
from torch import nn

from liespline import GConv, Grid, Group, Lift, Project, SplineBasis, local
from liespline.testing import check_group, equivariance_error

torch.manual_seed(0)


class Squeeze(Group):
    """Elements are the numbers t, `(*batch, 1)`; they add up."""

    dim, space_dim, element_shape = 1, 2, (1,)

    def product(self, g, h):
        return g + h

    def inverse(self, h):
        return -h

    def exp(self, a):
        return a

    def log(self, h):
        return h

    def act(self, h, x):
        return torch.cat((x[..., :1] * h.exp(), x[..., 1:] * (-h).exp()), -1)


# %% `check_group` tries the axioms on a thousand random elements and names the one that is broken, if any is.

check_group(Squeeze())


class Broken(Squeeze):
    def inverse(self, h):
        return h  # wrong


try:
    check_group(Broken())
except AssertionError as error:
    print(str(error).splitlines()[1])

# %% A grid of five squeezes about the identity, with Haar weights, and a network on it:

H = local(Squeeze(), 5, 0.25)
net = nn.Sequential(
    Lift(1, 4, 7, H, padding="same"), nn.ReLU(),
    GConv(4, 4, 7, H, h_basis=SplineBasis(local(Squeeze(), 3, H.spacing), degree=1), padding="same"),
)  # fmt: skip
print(net(torch.randn(1, 1, 32, 32)).shape)  # (batch, channels, squeezes, height, width)

# %% How equivariant is it? The group has no end, the grid has: elements are compared where their neighbours are
# still on the grid. `equivariance_error` squeezes images that are known at every point, exactly.


class Inner(nn.Module):
    def forward(self, x):
        return net(x)[:, :, 1:-1]


inner = Grid(H.group, H.elements[1:-1], H.weights[1:-1], H.spacing)
error = equivariance_error(Inner(), inner, size=61, elements=H.elements[3:4], blur=3.0, images=2)
print(f"relative error of a squeeze by one step: {error:.3f}")
assert error < 0.05

# %% And the projection makes it invariant, as for any other group:

scores = nn.Sequential(net, Project("mean", H), nn.AdaptiveAvgPool2d(1), nn.Flatten())
print(scores(torch.randn(2, 1, 32, 32)).shape)
