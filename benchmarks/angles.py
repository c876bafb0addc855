"""Accuracy against angle: networks trained on upright MNIST, tested on digits rotated by every 15°.

    python benchmarks/angles.py MNIST benchmarks/results/angles.json

MNIST is a folder with the official idx files. The rotated digits are generated from them. escnn takes part where it is
installed. All networks have the same layers, steps and optimiser, and about equally many weights. One core, ten
minutes.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

import liespline as ls
from liespline.lab.data import as_float
from liespline.lab.transforms import moved
from timing import facts

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is
from studies.data import mnist

ORIENTATIONS, STEPS, BATCH, SEEDS = 8, 300, 64, 3
TRAINED, TESTED = 10_000, 500
ANGLES = range(0, 360, 15)


def ours(n_h: int, widths: tuple[int, int, int]) -> nn.Module:
    """Three correlations with two halvings between them, the last one over all positions; the maximum over H."""
    grid = ls.uniform(ls.SO2(), n_h)
    a, b, c = widths
    near = ls.SplineBasis(ls.local(ls.SO2(), 3, grid.spacing)) if n_h > 1 else None

    def conv(source: int, target: int, window: int, padding: int) -> nn.Module:
        return ls.GConv(source, target, window, grid, h_basis=near, padding=padding, bias=False)

    return nn.Sequential(
        *(ls.Lift(1, a, 5, grid, padding=2, bias=False), ls.nn.BatchNorm(a), nn.ReLU(), ls.nn.Downsample(2)),
        *(conv(a, b, 5, 2), ls.nn.BatchNorm(b), nn.ReLU(), ls.nn.Downsample(2)),
        *(conv(b, c, 7, 0), ls.nn.BatchNorm(c), nn.ReLU(), ls.Project("max", grid), *head(c)),
    )


def head(features: int) -> list[nn.Module]:
    """The mean over positions, and two linear layers."""
    linear = [nn.Linear(features, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)]
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), *linear]


class Escnn(nn.Module):
    """The same network on regular fields of C_8."""

    def __init__(self, widths: tuple[int, int, int]) -> None:
        super().__init__()
        from escnn import gspaces
        from escnn import nn as enn

        plane = gspaces.rot2dOnR2(ORIENTATIONS)
        self.wrap, self.image = enn.GeometricTensor, enn.FieldType(plane, [plane.trivial_repr])
        a, b, c = (enn.FieldType(plane, width * [plane.regular_repr]) for width in widths)

        def block(source: enn.FieldType, target: enn.FieldType, window: int, padding: int) -> list[nn.Module]:
            conv = enn.R2Conv(source, target, kernel_size=window, padding=padding, bias=False)
            return [conv, enn.InnerBatchNorm(target), enn.ReLU(target)]

        def halved(field: enn.FieldType) -> nn.Module:
            return enn.PointwiseAvgPoolAntialiased(field, sigma=0.66, stride=2)

        self.features = enn.SequentialModule(
            *(*block(self.image, a, 5, 2), halved(a), *block(a, b, 5, 2), halved(b)),
            *(*block(b, c, 7, 0), enn.GroupPooling(c)),
        )
        self.classes = nn.Sequential(*head(widths[2]))

    def forward(self, images: Tensor) -> Tensor:
        """(B, 1, 29, 29) to (B, 10)."""
        return self.classes(self.features(self.wrap(images, self.image)).tensor)


def networks() -> dict[str, Callable[[], nn.Module]]:
    """What is compared, by name; widths are such that all have about equally many weights."""
    found: dict[str, Callable[[], nn.Module]] = {
        "liespline, 8 orientations": lambda: ours(ORIENTATIONS, (8, 12, 24)),
        "ordinary CNN": lambda: ours(1, (14, 24, 33)),
    }
    if importlib.util.find_spec("escnn"):
        found["escnn, 8 orientations"] = lambda: Escnn((6, 9, 13))
    return found


def digits(path: Path, split: str, count: int) -> tuple[Tensor, Tensor]:
    """The first digits of a split, (B, 1, 29, 29): of odd size, so that every stride of 2 keeps the centre."""
    images, labels = mnist.load(path, split, "upright").__getitems__(list(range(count)))
    return nn.functional.interpolate(as_float(images), (29, 29), mode="bicubic", align_corners=True), labels


def train(net: nn.Module, images: Tensor, labels: Tensor, seed: int) -> None:
    """AdamW with one cycle of the rate, on upright digits."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.01, total_steps=STEPS)
    for _ in range(STEPS):
        rows = torch.randint(len(images), (BATCH,), generator=generator)
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
        optimiser.step()
        schedule.step()


@torch.no_grad()
def accuracies(net: nn.Module, images: Tensor, labels: Tensor) -> list[float]:
    """The accuracy at every angle."""
    net.eval()
    scores = []
    for angle in ANGLES:
        element = torch.tensor([math.radians(angle)], dtype=torch.float64)
        rotated = moved(images, ls.SO2(), element)
        predicted = torch.cat([net(part).argmax(-1) for part in rotated.split(250)])
        scores.append(float((predicted == labels).double().mean()))
    return scores


def main(path: Path, out: Path) -> None:
    """Train and test every network, seed by seed; the file is written anew after each."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    trained, tested = digits(path, "train", TRAINED), digits(path, "test", TESTED)
    found: dict[str, dict[str, object]] = {}
    for seed in range(SEEDS):
        for name, build in networks().items():
            torch.manual_seed(seed)
            net = build()
            entry = found.setdefault(name, {"weights": sum(p.numel() for p in net.parameters()), "accuracy": []})
            train(net, *trained, seed)
            scores = accuracies(net, *tested)
            entry["accuracy"] += [scores]
            print(f"{name}, seed {seed}: upright {scores[0]:.1%}, mean {sum(scores) / len(scores):.1%}", flush=True)
            setup = {"trained": TRAINED, "tested": TESTED, "steps": STEPS, "batch": BATCH, "angles": list(ANGLES)}
            out.write_text(json.dumps({"facts": facts("cpu"), **setup, "networks": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
