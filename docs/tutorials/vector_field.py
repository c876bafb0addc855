"""Vectors that rotate with the image"""

# %% Flow, gradients, the direction in which a cell points: the output at each pixel is a vector, and when the image is
# rotated, the vectors move along and rotate too. `Project("vector", H)` reads such a field off the maps on the group:
# v(x) = Σ_h w(h) F(x, h) h·e₀. Here the network is trained to predict the slope of hills from noisy pictures of them.

import math

import torch
from torch import nn

from liespline import SO2, GConv, Lift, Project, uniform
from liespline.nn import BatchNorm

torch.manual_seed(0)
SIZE = 33
AXIS = torch.arange(SIZE) - (SIZE - 1) / 2
AT = torch.stack(torch.meshgrid(AXIS, AXIS, indexing="ij"), -1)  # (SIZE, SIZE, 2)


def hills(places, heights):
    """Return pictures of Gaussian hills (n, 1, SIZE, SIZE) and their slopes (n, 2, SIZE, SIZE), exactly."""
    apart = AT - places[:, :, None, None]  # (n, hills, SIZE, SIZE, 2)
    each = heights[..., None, None] * torch.exp(-apart.square().sum(-1) / 32)
    return each.sum(1, keepdim=True), -(each.unsqueeze(-1) * apart / 16).sum(1).movedim(-1, 1)


def draw(n):
    """Return places and heights of four hills."""
    return (torch.rand(n, 4, 2) - 0.5) * 20, torch.rand(n, 4) + 0.5


# %% Eight directions. The last layer has one channel; its projection is one arrow per pixel. A smooth activation keeps
# the arrows accurate between the eight directions; the kink of a ReLU needs finer grids (the guide has the numbers).

H = uniform(SO2(), 8)
net = nn.Sequential(
    Lift(1, 6, 7, H, padding="same", bias=False),
    BatchNorm(6),
    nn.SiLU(),
    GConv(6, 1, 7, H, padding="same"),
    Project("vector", H),  # (B, 1, 2, height, width)
    nn.Flatten(1, 2),
)
plain = nn.Sequential(nn.Conv2d(1, 16, 7, padding=3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 2, 7, padding=3))

for network, rate in ((net, 0.02), (plain, 0.005)):
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate)
    for _ in range(60):
        images, slopes = hills(*draw(8))
        loss = (network(images + 0.1 * torch.randn_like(images)) - slopes).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    network.eval()

# %% The same hills rotated by 30°, which is none of the eight directions: arrows at the new places, rotated. The error
# is relative to the length of the arrows, inside the disc that both pictures show.

places, heights = draw(16)
turn = SO2().matrix(torch.tensor([math.pi / 6]))
images, slopes = hills(places, heights)
rotated, rotated_slopes = hills(places @ turn.T, heights)
inside = AT.norm(dim=-1) < 11

with torch.no_grad():
    for name, network in (("equivariant", net), ("plain", plain)):
        found = network(rotated)
        error = (found - rotated_slopes)[:, :, inside].norm() / rotated_slopes[:, :, inside].norm()
        # Where each pixel of the rotated picture came from, and the arrows that the network drew there.
        reads = (AT @ turn) / ((SIZE - 1) / 2)
        before = nn.functional.grid_sample(
            network(images), reads.flip(-1).expand(16, -1, -1, -1), "bicubic", align_corners=True
        )
        expected = torch.einsum("ij,bjyx->biyx", turn, before)
        apart = (found - expected)[:, :, inside].norm() / expected[:, :, inside].norm()
        print(f"{name}: {float(error):.1%} from the true slopes, {float(apart):.1%} from its own arrows, rotated")
        if network is net:
            assert apart < 0.05
