"""What a trained network is worth: its scores, and how they hold when the images are turned or scaled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...grids import Grid, repulsion, uniform
from ...groups import SO2, SO3, Group, Scale
from ..data import Split, as_float
from ..moving import moved
from ..runs.trained import Trained
from ..tasks import find_task
from ..tasks.networks import SCALE_STEP

BATCH = 256


@dataclass(frozen=True)
class Moves:
    """Group elements that images are moved by, with the words that name them on a plot."""

    group: Group
    elements: Tensor
    """(N, *element_shape), the first one the identity."""
    labels: tuple[str, ...]
    axis: str


def moves_of(trained: Trained) -> Moves:
    """How images are moved to test a network: turned, in 3-D turned every way, or scaled for scale groups."""
    d = len(trained.signature.space)
    if trained.config.network.group == "scale":
        # Down to half and up to twice the size, the middle first in the list as the reference.
        powers = torch.tensor([0.0, -2, -1.5, -1, -0.5, 0.5, 1, 1.5, 2], dtype=torch.float64)
        elements = (SCALE_STEP * powers).exp().unsqueeze(-1)
        return Moves(Scale(d), elements, tuple(f"{float(e):.2f}" for e in elements[:, 0]), "scale")
    if d == 3:
        turns = repulsion(SO3(), 12).elements
        elements = torch.cat([SO3().identity(dtype=torch.float64).unsqueeze(0), turns])
        angles = SO3().log(elements).norm(dim=-1) * 180 / math.pi
        return Moves(SO3(), elements, tuple(f"{float(a):.0f}°" for a in angles), "angle of the rotation")
    elements = uniform(SO2(), 24).elements
    return Moves(SO2(), elements, tuple(f"{15 * i}°" for i in range(24)), "angle")


def batches(split: Split, limit: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """The first `limit` images of a split with their targets, evenly spread over it, as floats."""
    count = len(split)
    rows = torch.arange(count)
    if limit is not None and limit < count:
        rows = (torch.arange(limit) * count / limit).long()
    for part in torch.split(rows, BATCH):
        images, targets = split.__getitems__(part.tolist())
        yield as_float(images), targets


@torch.no_grad()
def predictions(trained: Trained, split: Split, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """Outputs and targets over a split, on the CPU."""
    device = next(trained.parameters()).device
    pairs = [(trained(x.to(device)).float().cpu(), y) for x, y in batches(split, limit)]
    outputs, targets = zip(*pairs, strict=True)
    return torch.cat(outputs), torch.cat(targets)


def scores(trained: Trained, outputs: Tensor, targets: Tensor) -> dict[str, float]:
    """Loss and scores of outputs that `predictions` gave."""
    objective = find_task(trained.config.task).objective(trained.config, trained.signature)
    counters = objective.scores()
    counters.update(outputs, targets)
    values = {name: float(value) for name, value in counters.compute().items()}
    return {"loss": float(objective.loss(outputs, targets)), **values}


def confusion(outputs: Tensor, targets: Tensor, classes: int) -> list[list[int]]:
    """How many images of each true class (rows) were taken for each class (columns)."""
    pairs = targets * classes + outputs.argmax(-1)
    table = torch.bincount(pairs, minlength=classes * classes).view(classes, classes)
    return [[int(value) for value in row] for row in table]


@torch.no_grad()
def under_moves(trained: Trained, split: Split, moves: Moves, limit: int) -> dict[str, Any]:
    """Accuracy at each move, over all of them, and by how much the outputs change.

    The change is √(Σ‖f(h·x) − f(x)‖² / Σ‖f(x)‖²), over images and moves: zero for an invariant network.
    """
    device = next(trained.parameters()).device
    count = len(moves.elements)
    right, change, size, seen = torch.zeros(count), 0.0, 0.0, 0
    for images, targets in batches(split, limit):
        images, targets = images.to(device), targets.to(device)
        reference = trained(images).double()
        seen, size = seen + len(images), size + (count - 1) * float(reference.square().sum())
        for i, element in enumerate(moves.elements):
            outputs = trained(moved(images, moves.group, element)) if i else reference
            right[i] += (outputs.argmax(-1) == targets).sum().cpu()
            change += float((outputs.double() - reference).square().sum())
    accuracy = [float(value) for value in right / seen]
    return {
        "axis": moves.axis,
        "labels": list(moves.labels),
        "accuracy": accuracy,
        "mean_accuracy": sum(accuracy) / count,
        "change": math.sqrt(change / size),
        "images": seen,
    }


def grid_of(trained: Trained) -> Grid | None:
    """The grid on H of a network's first layer, or None if it has no such layer."""
    for module in trained.modules():
        grid = getattr(module, "grid", None)
        if isinstance(grid, Grid):
            return grid
    return None
