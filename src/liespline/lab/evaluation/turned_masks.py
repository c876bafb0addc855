"""How a segmentation follows when the image is turned, counted inside the disc that stays in view."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from ...groups import Group
from ..data.ragged import IGNORE
from ..moving import moved

EDGE = 6  # samples: 0.27⁶ < 1e-3


def in_view(space: Sequence[int]) -> Tensor:
    """The largest ball in the image, less a tenth of its radius, which turns leave in view: booleans (*space)."""
    axes = [torch.arange(n, dtype=torch.float64) - (n - 1) / 2 for n in space]
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    return points.norm(dim=-1) <= 0.9 * (min(space) - 1) / 2


def turned_image(images: Tensor, group: Group, element: Tensor) -> Tensor:
    """Images (B, C, *space) turned about their centre; what moves in is the mirror image of what was there.

    Black corners would be new to any network: what they do to it says nothing about turns.
    """
    d = images.ndim - 2
    # A corner is √d times as far from the centre as the middle of a side; splines feel an edge for some samples more.
    far = math.ceil(max(images.shape[2:]) * (math.sqrt(d) - 1) / 2) + EDGE
    around = [min(n - 1, far) for n in images.shape[2:]]
    wide = nn.functional.pad(images, [a for margin in reversed(around) for a in (margin, margin)], mode="reflect")
    return moved(wide, group, element, images.shape[2:])


@torch.no_grad()
def under_turns(
    answer: Callable[[Tensor], Tensor], images: Tensor, masks: Tensor, group: Group, elements: Tensor, classes: int
) -> dict[str, list[Tensor]]:
    """Three tables (K, K) of voxels per turn h, all counted inside the disc: rows truth, columns answer.

    "upright": the prediction f(x) against the truth. "rotated": h⁻¹·f(h·x) against the truth.
    "rotation_consistency": h⁻¹·f(h·x) against f(x), which is the equivariance of the masks and needs no truth.
    Logits are rotated back, not masks: they are smooth, and rotating a mask costs more than what is to be measured.
    """
    inside = in_view(images.shape[2:]).to(images.device)
    upright = answer(images).argmax(1)
    tables: dict[str, list[Tensor]] = {"upright": [], "rotated": [], "rotation_consistency": []}
    for element in elements:
        logits = answer(turned_image(images, group, element))
        back = turned_image(logits.float(), group, group.inverse(element)).argmax(1)
        tables["upright"].append(confusions(upright, masks, inside, classes))
        tables["rotated"].append(confusions(back, masks, inside, classes))
        tables["rotation_consistency"].append(confusions(back, upright, inside, classes))
    return tables


def confusions(answers: Tensor, truth: Tensor, inside: Tensor, classes: int) -> Tensor:
    """How many voxels of each true class (rows) were answered as each class (columns), where `inside`."""
    seen = inside.expand_as(truth) & (truth != IGNORE)
    pairs = truth[seen].long() * classes + answers[seen]
    return torch.bincount(pairs, minlength=classes * classes).view(classes, classes).cpu()


def dice(table: Tensor) -> Tensor:
    """Dice of each class from its table: (K,), NaN for a class that is neither there nor answered."""
    table = table.double()
    score: Tensor = 2 * table.diagonal(dim1=-2, dim2=-1) / (table.sum(-1) + table.sum(-2))
    return score
