"""What to lay around an image that is turned or shrunk, so that only the network is measured.

    python benchmarks/surroundings.py [benchmarks/results/surroundings.json]

Bright textures of two classes are cut out of larger ones, so that their real surroundings are known. A plain network
and an equivariant one learn the cuts; then the change of their outputs when the images move is measured with the real
surroundings, which is the truth, and with several ways to do without them. `python benchmarks/page.py` then writes the
table of docs/guide/equivariance.md.
"""

from __future__ import annotations

import math
import sys

import torch
from torch import Tensor, nn

from liespline import SO2, SO3, Scale, Trivial, repulsion, uniform
from liespline.groups import Group
from liespline.lab.transforms import in_disc, moved, radii
from liespline.models import classifier
from timing import write_tables

WAYS = ("black", "mean colour", "disc on black", "disc on its rim's colour", "cut to what it shows")


def textures(count: int, side: int, d: int, seed: int) -> tuple[Tensor, Tensor]:
    """Bright tissue-like noise: dark spots on light ground, in class 1 twice as large as in class 0."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % 2
    noise = torch.randn(count, 3, *(side,) * d, generator=generator)
    smooth = [_blurred(noise, sigma) for sigma in (1.2, 2.4)]
    pick = labels.view(-1, 1, *(1,) * d).bool()
    spots = torch.where(pick, smooth[1], smooth[0])
    colours = torch.tensor([0.85, 0.7, 0.8]).view(1, 3, *(1,) * d)
    return (colours - 0.25 * (spots > 0.8).float() + 0.02 * spots).clamp(0, 1), labels


def _blurred(noise: Tensor, sigma: float) -> Tensor:
    reach = math.ceil(3 * sigma)
    taps = torch.exp(-(torch.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    taps, conv = taps / taps.sum(), (nn.functional.conv1d, nn.functional.conv2d, nn.functional.conv3d)[noise.ndim - 3]
    for axis in range(2, noise.ndim):
        shape = [1] * noise.ndim
        shape[axis] = len(taps)
        pad = [reach if a == axis else 0 for a in range(2, noise.ndim)]
        noise = conv(noise, taps.view(shape).expand(noise.shape[1], *shape[1:]), padding=pad, groups=noise.shape[1])
    return noise / noise.flatten(2).std(-1).view(*noise.shape[:2], *(1,) * (noise.ndim - 2))


def cut(images: Tensor, side: int) -> Tensor:
    """The centre of the images."""
    for axis in range(2, images.ndim):
        images = images.narrow(axis, (images.shape[axis] - side) // 2, side)
    return images


def trained(network: nn.Module, images: Tensor, labels: Tensor, epochs: int) -> nn.Module:
    """The network after a short training."""
    optimiser = torch.optim.AdamW(network.parameters(), 5e-3)
    for epoch in range(epochs):
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        for part in order.split(32):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(images[part]), labels[part]).backward()
            optimiser.step()
    return network.eval()


@torch.no_grad()
def changes(network: nn.Module, large: Tensor, side: int, group: Group, elements: Tensor) -> dict[str, float]:
    """√(Σ‖f(h·x) − f(x)‖² / Σ‖f(x)‖²) with the real surroundings, then without them in every way."""
    small = cut(large, side)
    inside, rim = in_disc(small)
    mean = small.mean(tuple(range(2, small.ndim)), keepdim=True)
    disc = (radii(small.shape[2:]) <= side / 2).float()
    parts = {
        "real": (large, torch.zeros(1)),
        "black": (small, torch.zeros(1)),
        "mean colour": (small - mean, mean),
        "disc on black": (small * disc, torch.zeros(1)),
        "disc on its rim's colour": (inside, rim),
    }
    found = {}
    for name, (part, under) in parts.items():
        reference = network(cut(part, side) + under)
        total = 0.0
        for element in elements:
            total += float((network(cut(moved(part, group, element), side) + under) - reference).square().sum())
        found[name] = math.sqrt(total / (len(elements) * float(reference.square().sum())))
    if isinstance(group, Scale):
        reference, total = network(small), 0.0
        for element in elements:
            left = side - 2 * round(side * (1 - float(element)) / 2)
            total += float((network(cut(moved(small, group, element), left)) - reference).square().sum())
        found["cut to what it shows"] = math.sqrt(total / (len(elements) * float(reference.square().sum())))
    return found


def main(path: str) -> None:
    """Measure all, print and write one table."""
    torch.manual_seed(0)
    turns = torch.linspace(0, 2 * math.pi, 13, dtype=torch.float64)[1:-1].unsqueeze(-1)
    shrinks = (-math.log(2) * torch.arange(1, 5, dtype=torch.float64) / 4).exp().unsqueeze(-1)
    cases = (
        ("rotations", 2, 41, 61, uniform(SO2(), 8), SO2(), turns, 400, 6),
        ("scalings", 2, 41, 85, uniform(Scale(2), 4, spacing=0.5 * math.log(2)), Scale(2), shrinks, 400, 6),
        ("3-D rotations", 3, 15, 27, uniform(SO3(), 24), SO3(), repulsion(SO3(), 5).elements, 120, 4),
    )
    rows = [["moves", "network", "real surroundings", *WAYS]]
    for name, d, side, wide, grid, group, elements, count, epochs in cases:
        large, labels = textures(count, wide, d, seed=0)
        test, _ = textures(48 if d == 3 else 100, wide, d, seed=1)
        kernel = {"kernel": "local", "n_k": 7} if d == 3 else {}
        for which, one in (("plain", uniform(Trivial(d), 1)), ("equivariant", grid)):
            widths = (4, 6, 8) if len(one) > 1 else (8, 16, 16)
            more = kernel if len(one) > 1 else {}
            network = trained(classifier(3, 2, one, widths=widths, **more), cut(large, side), labels, epochs)
            found = changes(network, test, side, group, elements)
            shares = [f"{100 * value:.1f} %" for value in found.values()]
            rows.append([name, which, *shares, *["–"] * (len(WAYS) + 1 - len(shares))])
            print(" | ".join(rows[-1]), flush=True)
    about = "Change of the output; small networks, a minute of training, one seed"
    write_tables(path, {"changes": rows}, about)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/results/surroundings.json")
