"""How a network's answers hold when what it sees is turned or scaled, and nothing else changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...grids import repulsion, uniform
from ...groups import SO2, SO3, Group, Scale
from ..data import Split
from ..moving import in_disc, moved
from ..runs.trained import Trained
from .scores import batches


@dataclass(frozen=True)
class Moves:
    """Group elements that images are moved by, with the words that name them on a plot."""

    group: Group
    elements: Tensor
    """(N, *element_shape), the first one the identity."""
    labels: tuple[str, ...]
    axis: str


def moves_of(trained: Trained) -> Moves:
    """How images are moved to test a network: turned, in 3-D turned every way, or shrunk for scale groups.

    None of these moves takes anything out of view that was in the middle disc.
    """
    d = len(trained.signature.space)
    if trained.config.network.group == "scale":
        elements = (-math.log(2) * torch.arange(9, dtype=torch.float64) / 8).exp().unsqueeze(-1)
        return Moves(Scale(d), elements, tuple(f"{float(e):.2f}" for e in elements[:, 0]), "scale")
    if d == 3:
        turns = repulsion(SO3(), 12).elements
        elements = torch.cat([SO3().identity(dtype=torch.float64).unsqueeze(0), turns])
        angles = SO3().log(elements).norm(dim=-1) * 180 / math.pi
        return Moves(SO3(), elements, tuple(f"{float(a):.0f}°" for a in angles), "angle of the rotation")
    elements = uniform(SO2(), 24).elements
    return Moves(SO2(), elements, tuple(f"{15 * i}°" for i in range(24)), "angle")


@torch.no_grad()
def under_moves(trained: Trained, split: Split, moves: Moves, limit: int) -> dict[str, Any]:
    """Accuracy at each move, over all of them, and by how much the outputs change.

    Each image is first cut to the largest disc, which stays in view however it is turned; around it lies the mean
    colour of the disc's rim. So nothing moves in or out, and upright images are cut like all others. The change is
    √(Σ‖f(h·x) − f(x)‖² / Σ‖f(x)‖²), over images and moves: zero for an invariant network. `upright` is the accuracy
    on the same images as they are.
    """
    device = next(trained.parameters()).device
    count = len(moves.elements)
    right, whole, change, size, seen = torch.zeros(count), 0, 0.0, 0.0, 0
    for images, targets in batches(split, limit):
        images, targets = images.to(device), targets.to(device)
        inside, around = in_disc(images)
        whole += int((trained(images).argmax(-1) == targets).sum())
        reference = trained(inside + around).double()
        seen, size = seen + len(images), size + (count - 1) * float(reference.square().sum())
        for i, element in enumerate(moves.elements):
            outputs = trained(moved(inside, moves.group, element) + around) if i else reference
            right[i] += (outputs.argmax(-1) == targets).sum().cpu()
            change += float((outputs.double() - reference).square().sum())
    accuracy = [float(value) for value in right / seen]
    return {
        "axis": moves.axis,
        "labels": list(moves.labels),
        "accuracy": accuracy,
        "mean_accuracy": sum(accuracy) / count,
        "upright": whole / seen,
        "change": math.sqrt(change / size),
        "images": seen,
    }
