"""Landmarks at any scale"""

# %% Find a point in an image whatever its size: the network predicts a heatmap,
# and the group R²⋊R⁺ scales its kernels.
# Here the target is an upright cross beside a diagonal one, drawn small in training and larger in the test.

import math

import torch
from torch import nn

from liespline import GConv, Lift, Project, Scale, SplineBasis, local, uniform
from liespline.nn import BatchNorm

torch.manual_seed(0)
SIZE = 48


def bars(p):
    """Return two crossed bars at points `(*, 2)`."""
    return torch.exp(-((p.abs().amin(-1) / 1.2) ** 4)) * torch.exp(-((p.abs().amax(-1) / 4) ** 6))


def draw(n, scale):
    """Return images of a size with an upright and a diagonal cross, and the places of the upright ones."""
    axis = torch.arange(SIZE) - (SIZE - 1) / 2
    at = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
    places = (torch.rand(n, 2, 2) - 0.5) * (SIZE - 16 * scale)
    places[:, 1] = places[:, 0] + 9 * scale * torch.nn.functional.normalize(torch.randn(n, 2), dim=-1)
    p = (at - places[:, :1, None, None]) / scale  # (n, 1, SIZE, SIZE, 2), the cross
    q = (at - places[:, 1:, None, None]) / scale
    turned = torch.stack((q.sum(-1), q.diff(dim=-1)[..., 0]), -1) / math.sqrt(2)  # the other one, by 45°
    return (bars(p) + bars(turned)).clamp(max=1), places[:, 0]


# %% Three scales, half an octave apart. One spline on H makes each scale look at itself alone, so that no scale
# misses a neighbour at the ends of the grid; windows grow with the scale, and the maximum over H follows the size of the
# image.


def network(scales):
    H = uniform(Scale(2), scales, spacing=0.5 * math.log(2))
    near = SplineBasis(local(Scale(2), 1, H.spacing), degree=1)
    return nn.Sequential(
        Lift(1, 8, 7, H, padding="same"), BatchNorm(8), nn.ReLU(),
        GConv(8, 8, 7, H, h_basis=near, padding="same"), BatchNorm(8), nn.ReLU(),
        Project("max", H), nn.Conv2d(8, 1, 1),
    )  # fmt: skip


# %% Training sees crosses of size 1 alone, and asks which of the pixels is the cross's centre.


def train(net, steps=60):
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.03)
    for _ in range(steps):
        image, places = draw(8, scale=1.0)
        row, column = (places + (SIZE - 1) / 2).round().long().unbind(-1)
        loss = nn.functional.cross_entropy(net(image).flatten(1), row * SIZE + column)  # which pixel is it?
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return net.eval()


@torch.no_grad()
def found(net, scale, within=2):
    """Return the share of crosses whose heatmap peaks near them."""
    image, places = draw(64, scale)
    best = net(image).flatten(1).argmax(-1)
    rows_columns = torch.stack((best // SIZE, best % SIZE), -1) - (SIZE - 1) / 2
    return float(((rows_columns - places).norm(dim=-1) < within * scale).double().mean())


for name, scales in (("one scale", 1), ("three scales", 3)):
    net = train(network(scales))
    print(name, [f"×{s}: {found(net, s):.0%}" for s in (1.0, 1.41, 2.0)])
