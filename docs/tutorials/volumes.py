"""Volumes and 3-D rotations"""

# %% In three dimensions nothing changes but the group: `SO3()` acts on R³, so `Lift` takes
# `(B, C, depth, height, width)`. The 24 rotations of the cube carry voxels to voxels, which makes a network
# on them equivariant to rounding.

import torch
from torch import nn

from liespline import SO3, GConv, Lift, Project, SplineBasis, local, uniform
from liespline.nn import BatchNorm

torch.manual_seed(0)
H = uniform(SO3(), 24)
near = SplineBasis(local(SO3(), 7, H.spacing))  # the identity and one step along each axis of the algebra, both ways
net = nn.Sequential(
    Lift(1, 4, 5, H, stride=2, padding=2), BatchNorm(4), nn.ReLU(),
    GConv(4, 6, 3, H, h_basis=SplineBasis(near.grid, degree=1), padding=1), BatchNorm(6), nn.ReLU(),
    Project("max", H), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(6, 2),
)  # fmt: skip

# %% Volumes of two shapes, a long and a flat ellipsoid, each rotated at random:


def volumes(n, size=13):
    axis = torch.arange(size) - (size - 1) / 2
    at = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), -1)
    labels = torch.arange(n) % 2
    axes = torch.tensor([[5.0, 2.0, 2.0], [4.0, 4.0, 1.5]])[labels]
    rotations = SO3().exp(2 * torch.randn(n, 3))
    body = SO3().pull(rotations[:, None, None, None], at) / axes[:, None, None, None]
    return torch.sigmoid(6 * (1 - body.norm(dim=-1))).unsqueeze(1), labels


optimiser = torch.optim.AdamW(net.parameters(), lr=0.02)
for _ in range(15):
    x, y = volumes(8)
    loss = nn.functional.cross_entropy(net(x), y)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()

# %% The network's output is the same for every rotation of the cube, at any stage of training:

net.eval()
x, y = volumes(4)
with torch.no_grad():
    quarter = torch.rot90(x, 1, (-3, -1))
    assert torch.allclose(net(quarter), net(x), atol=1e-4)
print("loss", round(loss.item(), 3))

# %% Larger grids: `uniform(SO3(), 60)` is the icosahedron's group, and `repulsion(SO3(), n)` spreads any number of
# rotations evenly. For scans of your own, or an `.npz` file of MedMNIST's layout, there is a command:
#
# `liespline train volumes --data DIR --group so3 --elements 24`
