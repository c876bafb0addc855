"""How images are turned, scaled and squeezed to test a network, and how well its accuracy holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import roma
import torch
from torch import Tensor

from ...groups import GL2, O2, O3, SO2, SO3, Group, Product, Scale
from ..data import Split
from ..moving import in_disc, magnification, moved
from ..runs.trained import Trained
from .scores import batches, outputs_of, scores

AS_DATA = {"scaled": "scale", "rotated-scaled": "sim2"}
"""The group by which a generated set moves its images."""
BASE = 11.0
"""Degrees by which copies in the plane are turned before all else."""
ANGLES = (0.0, 22.5, 30.0, 45.0, 60.0, 67.5, 90.0, 112.5, 120.0, 135.0, 150.0, 157.5, 180.0)
"""The multiples of 22.5° and of 30° up to half a turn."""
FEW = (0.0, 22.5, 30.0, 45.0, 90.0)
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
    d, group = len(trained.signature.space), _how(trained)
    if group == "a little":
        return _a_little()
    if group == "scale":
        return _shrunk(d, torch.arange(9))
    if d == 3:
        # Drawn, and the same for all: grids that lie evenly may be turns of the voxels, where nothing is interpolated.
        return _in_space(group, torch.cat([SO3().identity(dtype=torch.float64).unsqueeze(0), _drawn(12)]))
    # Many lie between the orientations of a grid, which alone would flatter it: half of them for 12 or 8.
    turns = 16 if group in ("sim2", "gl2") else 24
    return _in_the_plane(group, [360 / turns * i for i in range(turns)])


def copies_of(trained: Trained, few: bool = False) -> Moves:
    """The copies of an image that a network's answers are compared on, all of them interpolated once.

    None is upright, and by none do samples meet samples. In the plane they are turned by 11° and on from there by every
    22.5° and 30° up to 180°: of 4, 6, 8, 12, 16 and 24 orientations, some pairs differ by a step on the grid and many
    by one between. In space they are drawn rotations, each also turned on by a half or a third of a turn that the
    grids of 12, 24 and 60 rotations have. Scales are ⅛ of an octave apart. `few` of them are for masks, which are
    turned whatever the group.
    """
    d, group = len(trained.signature.space), _how(trained)
    if few and trained.signature.kind == "masks" and group not in ("o2", "o3"):
        group = "so2" if d == 2 else "so3"
    if group == "a little":
        return _a_little(2.5)
    if group == "scale":
        return _shrunk(d, torch.arange(8) + 0.5)
    if d == 3:
        half, third = torch.diag(torch.tensor([-1.0, -1, 1])), torch.eye(3).roll(1, 0)
        drawn = _drawn(6)
        if few:
            return _in_space(group, torch.cat([drawn[:2], half.double() @ drawn[:1]]))
        more = torch.cat([half.double() @ drawn[:3], third.double() @ drawn[3:]])
        return _in_space(group, torch.cat([drawn, more]))
    degrees = FEW if few or group in ("sim2", "gl2") else ANGLES
    found, base = _in_the_plane(group, degrees), _in_the_plane(group, (BASE,)).elements[0]
    return replace(found, elements=found.group.product(found.elements, base))


def _how(trained: Trained) -> str:
    """The name of the group that images are moved by."""
    if trained.config.moved == "affine" or trained.config.network.max_angle is not None:
        return "a little"
    return AS_DATA.get(trained.config.moved, str(trained.config.network.group))


def _a_little(more: float = 0.0) -> Moves:
    """Turns by at most 20°, as far as affNIST goes: for networks that are upright otherwise."""
    degrees = [angle + more for angle in (0, -20, -15, -10, -5, 5, 10, 15, 20) if angle + more <= 20]
    elements = torch.tensor(degrees, dtype=torch.float64).deg2rad().unsqueeze(-1)
    return Moves(SO2(), elements, tuple(f"{angle:g}°" for angle in degrees), "angle")


def _shrunk(d: int, eighths: Tensor) -> Moves:
    """Scales by so many eighths of an octave."""
    elements = (-math.log(2) * eighths.double() / 8).exp().unsqueeze(-1)
    return Moves(Scale(d), elements, tuple(f"{float(e):.2f}" for e in elements[:, 0]), "scale")


def _drawn(count: int) -> Tensor:
    """Rotations of space, the same ones in every run."""
    quaternions = torch.randn(count, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return roma.unitquat_to_rotmat(torch.nn.functional.normalize(quaternions, dim=-1))


def _in_space(group: str, elements: Tensor) -> Moves:
    """These rotations, and mirrored too for O(3)."""
    labels = [f"{float(a):.0f}°" for a in SO3().log(elements).norm(dim=-1) * 180 / math.pi]
    if group == "o3":
        elements, labels = torch.cat([elements, -elements]), [*labels, *(f"{label}, mirrored" for label in labels)]
    return Moves(O3() if group == "o3" else SO3(), elements, tuple(labels), ROTATIONS)


def _in_the_plane(group: str, degrees: Sequence[float]) -> Moves:
    """Turns by these angles, the same ones whatever the network, and those again mirrored, shrunk or squeezed."""
    angles, count = torch.tensor(degrees, dtype=torch.float64).deg2rad().unsqueeze(-1), len(degrees)
    labels = [f"{angle:g}°" for angle in degrees]
    match group:
        case "o2":
            o2 = O2()
            turns = torch.cat([angles, torch.ones_like(angles)], 1)
            elements = o2.product(turns, o2.representatives(dtype=torch.float64).unsqueeze(1)).flatten(0, 1)
            return Moves(o2, elements, (*labels, *(f"{label}, mirrored" for label in labels)), "angle")
        case "sim2":
            sim2, scales = Product(SO2(), Scale(2)), (1.0, 0.5**0.5, 0.5)
            each = [sim2.join(angles, torch.full((count, 1), s, dtype=torch.float64)) for s in scales]
            words = [label + ("" if s == 1 else f", at scale {s:.2g}") for s in scales for label in labels]
            return Moves(sim2, torch.cat(each), tuple(words), "angle")
        case "gl2":
            squeezes = ((0.0, 0.0), (0.3, 0.0), (0.0, 0.3))
            algebra = [torch.tensor([[0.0, *squeeze]], dtype=torch.float64).expand(count, 3) for squeeze in squeezes]
            names = ("", ", squeezed along an axis", ", squeezed along a diagonal")
            elements = GL2().exp(torch.cat([torch.cat((a, angles), 1) for a in algebra]))
            return Moves(GL2(), elements, tuple(label + name for name in names for label in labels), "angle")
        case _:
            return Moves(SO2(), angles, tuple(labels), "angle")


@torch.no_grad()
def under_moves(trained: Trained, split: Split, moves: Moves, limit: int) -> dict[str, Any]:
    """Accuracy at each move and over all of them.

    Each image is first cut to the largest disc that stays in view however it is moved; around it lies the mean
    colour of the disc's rim. So nothing moves in or out, and upright images are cut like all others. `upright` is the
    accuracy on the same images as they are, `scores` are those of all moved images together, each as often as it was
    moved.
    """
    device = next(trained.parameters()).device
    count, stretch = len(moves.elements), magnification(moves.group, moves.elements)
    right, whole, seen = torch.zeros(count), 0, 0
    answers: list[tuple[Tensor, Tensor]] = []
    for images, targets in batches(split, limit):
        images, targets = images.to(device), targets.to(device)
        inside, around = in_disc(images, max(1.0, stretch))
        whole += int((outputs_of(trained, images).argmax(-1) == targets).sum())
        seen += len(images)
        for i, element in enumerate(moves.elements):
            outputs = outputs_of(trained, (moved(inside, moves.group, element) if i else inside) + around)
            if i:
                answers.append((outputs.cpu(), targets.cpu()))
            right[i] += (outputs.argmax(-1) == targets).sum().cpu()
    accuracy = [float(value) for value in right / seen]
    moved_scores = scores(trained, answers)
    return {
        "axis": moves.axis,
        "labels": list(moves.labels),
        "accuracy": accuracy,
        "mean_accuracy": sum(accuracy) / count,
        "upright": whole / seen,
        "images": seen,
        "scores": {name: value for name, value in moved_scores.items() if name != "loss"},
    }
