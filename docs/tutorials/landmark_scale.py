"""Landmarks at any scale"""

# %% Find a point in an image whatever its size: the network predicts a heatmap, and the group R²⋊R⁺ scales its kernels.
# Here the target is a thin cross beside a thick one, drawn small in training and larger in the test.

import math

import torch
from torch import nn

from liespline import GConv, Lift, Project, Scale, SplineBasis, local, uniform
from liespline.nn import BatchNorm
from liespline.testing import equivariance_error

torch.manual_seed(0)
SIZE = 48


def bars(p, width):
    """Return two crossed bars at points `(*, 2)`."""
    return torch.exp(-((p.abs().amin(-1) / width) ** 4)) * torch.exp(-((p.abs().amax(-1) / 4) ** 6))


def draw(n, scale):
    """Return images of a size with a thin and a thick cross, and the places of the thin ones."""
    axis = torch.arange(SIZE) - (SIZE - 1) / 2
    at = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
    places = (torch.rand(n, 2, 2) - 0.5) * (SIZE - 16 * scale)
    places[:, 1] = places[:, 0] + 9 * scale * torch.nn.functional.normalize(torch.randn(n, 2), dim=-1)
    p = (at - places[:, :1, None, None]) / scale  # (n, 1, SIZE, SIZE, 2), the cross
    q = (at - places[:, 1:, None, None]) / scale
    return (bars(p, 0.8) + bars(q, 1.8)).clamp(max=1), places[:, 0]


# %% Three scales, half an octave apart. One spline on H makes each scale look at itself alone, so that no scale
# misses a neighbour at the ends of the grid; windows grow with the scale, and the maximum over H follows the size of
# the image.


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
def found(net, scale):
    """Return the share of crosses whose heatmap peaks within two samples (times the scale) of them."""
    image, places = draw(64, scale)
    best = net(image).flatten(1).argmax(-1)
    peaks = torch.stack((best // SIZE, best % SIZE), -1) - (SIZE - 1) / 2
    return float(((peaks - places).norm(dim=-1) < 2 * scale).double().mean())


trained = train(network(3))
print({f"×{scale}": f"{found(trained, scale):.0%}" for scale in (1.0, 1.41, 2.0)})

# %% That larger crosses are found is no accident of this training: the features of an image twice as large are those of
# the image itself, two steps further up in scale. How exactly, on images that are known at every point:

H = uniform(Scale(2), 3, spacing=0.5 * math.log(2))
error = equivariance_error(trained[:6], H, size=61, elements=H.elements[2:], blur=3.0, images=2)
print(f"relative difference at twice the size: {error:.3f}")
assert error < 0.05
