"""How well a network's answers hold when images are turned or scaled and nothing else changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import roma
import torch
from torch import Tensor

from ...grids import uniform
from ...groups import GL2, O2, O3, SO2, SO3, Group, Product, Scale
from ..data import Split
from ..moving import in_disc, magnification, moved
from ..runs.trained import Trained
from .scores import batches, outputs_of, scores

AS_DATA = {"scaled": "scale", "rotated-scaled": "sim2"}
"""The group by which a generated set moves its images."""
ROTATIONS = "angle of the rotation"
"""The axis of moves that have axes of their own too, in 3-D."""


@dataclass(frozen=True)
class Moves:
    """Group elements that images are moved by, with the words that name them on a plot."""

    group: Group
    elements: Tensor
    """(N, *element_shape), the first one the identity."""
    labels: tuple[str, ...]
    axis: str


def moves_of(trained: Trained) -> Moves:
    """How images are moved to test a network: as its data are, where these say so; else by all that its group does.

    Those of no group are turned. So networks of one set are tested on the same images, or on these mirrored too.
    Turned, in 3-D turned every way, mirrored or not; shrunk for scales; squeezed for GL(2). Those that learned upright
    images to tell a little moved ones are turned a little.
    """
    d = len(trained.signature.space)
    group = AS_DATA.get(trained.config.moved, str(trained.config.network.group))
    if trained.config.moved == "affine" or trained.config.network.within is not None:
        return _a_little()
    if group == "scale":
        elements = (-math.log(2) * torch.arange(9, dtype=torch.float64) / 8).exp().unsqueeze(-1)
        return Moves(Scale(d), elements, tuple(f"{float(e):.2f}" for e in elements[:, 0]), "scale")
    if d == 3:
        # Drawn, and the same for all: grids that lie evenly may be turns of the voxels, where nothing is interpolated.
        drawn = torch.Generator().manual_seed(0)
        quaternions = torch.randn(12, 4, dtype=torch.float64, generator=drawn)
        turns = roma.unitquat_to_rotmat(torch.nn.functional.normalize(quaternions, dim=-1))
        elements = torch.cat([SO3().identity(dtype=torch.float64).unsqueeze(0), turns])
        labels = [f"{float(a):.0f}°" for a in SO3().log(elements).norm(dim=-1) * 180 / math.pi]
        if group == "o3":
            elements, labels = torch.cat([elements, -elements]), [*labels, *(f"{label}, mirrored" for label in labels)]
        return Moves(O3() if group == "o3" else SO3(), elements, tuple(labels), ROTATIONS)
    return _in_the_plane(group)


def _a_little() -> Moves:
    """Turns by at most 20°, as far as affNIST goes: for networks that are upright otherwise."""
    degrees = (0, -20, -15, -10, -5, 5, 10, 15, 20)
    elements = torch.tensor(degrees, dtype=torch.float64).deg2rad().unsqueeze(-1)
    return Moves(SO2(), elements, tuple(f"{angle}°" for angle in degrees), "angle")


def _in_the_plane(group: str) -> Moves:
    """Turns all around, the same ones whatever the network, and those again mirrored, shrunk or squeezed.

    Many lie between the orientations of a grid, which alone would flatter it: half of them for 12 or 8.
    """
    turns = 16 if group in ("sim2", "gl2") else 24
    angles = uniform(SO2(), turns).elements
    labels = [f"{360 / turns * i:g}°" for i in range(turns)]
    match group:
        case "o2":
            elements = uniform(O2(), turns).elements
            return Moves(O2(), elements, (*labels, *(f"{label}, mirrored" for label in labels)), "angle")
        case "sim2":
            sim2, scales = Product(SO2(), Scale(2)), (1.0, 0.5**0.5, 0.5)
            each = [sim2.join(angles, torch.full((turns, 1), s, dtype=torch.float64)) for s in scales]
            words = [label + ("" if s == 1 else f", at scale {s:.2g}") for s in scales for label in labels]
            return Moves(sim2, torch.cat(each), tuple(words), "angle")
        case "gl2":
            squeezes = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.3))
            algebra = [torch.tensor([[0.0, *squeeze]], dtype=torch.float64).expand(turns, 3) for squeeze in squeezes]
            names = ("", ", squeezed along an axis", ", squeezed along a diagonal")
            elements = GL2().exp(torch.cat([torch.cat((a, angles), 1) for a in algebra]))
            return Moves(GL2(), elements, tuple(label + name for name in names for label in labels), "angle")
        case _:
            return Moves(SO2(), angles, tuple(labels), "angle")


@torch.no_grad()
def under_moves(trained: Trained, split: Split, moves: Moves, limit: int) -> dict[str, Any]:
    """Accuracy at each move, over all of them, and by how much the outputs change.

    Each image is first cut to the largest disc that stays in view however it is moved; around it lies the mean
    colour of the disc's rim. So nothing moves in or out, and upright images are cut like all others. The change is
    √(Σ‖f(h·x) − f(x)‖² / Σ‖f(x)‖²), over images and moves: zero for an invariant network. `upright` is the accuracy
    on the same images as they are, `scores` are those of all moved images together, each as often as it was moved.
    """
    device = next(trained.parameters()).device
    count, stretch = len(moves.elements), magnification(moves.group, moves.elements)
    right, whole, change, size, seen = torch.zeros(count), 0, 0.0, 0.0, 0
    answers: list[tuple[Tensor, Tensor]] = []
    for images, targets in batches(split, limit):
        images, targets = images.to(device), targets.to(device)
        inside, around = in_disc(images, max(1.0, stretch))
        whole += int((outputs_of(trained, images).argmax(-1) == targets).sum())
        reference = outputs_of(trained, inside + around)
        seen, size = seen + len(images), size + (count - 1) * float(reference.double().square().sum())
        for i, element in enumerate(moves.elements):
            outputs = outputs_of(trained, moved(inside, moves.group, element) + around) if i else reference
            if i:
                answers.append((outputs.cpu(), targets.cpu()))
            right[i] += (outputs.argmax(-1) == targets).sum().cpu()
            change += float((outputs.double() - reference.double()).square().sum())
    accuracy = [float(value) for value in right / seen]
    moved_scores = scores(trained, answers)
    return {
        "axis": moves.axis,
        "labels": list(moves.labels),
        "accuracy": accuracy,
        "mean_accuracy": sum(accuracy) / count,
        "upright": whole / seen,
        "change": math.sqrt(change / size),
        "images": seen,
        "scores": {name: value for name, value in moved_scores.items() if name != "loss"},
    }
