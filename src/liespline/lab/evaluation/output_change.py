"""By how much a network's answers change between copies of an image that lie differently."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from ...grids import Grid
from ...groups import Group
from ...nn import GConv, Lift
from ...testing.measure import changed_predictions, output_change
from ..data import Split
from ..moving import in_disc, magnification, moved
from ..runs.trained import Trained
from .moves import Moves, copies_of
from .scores import batches, outputs_of

FLOOR_IMAGES = 100
SAME = 1e-4
"""How far apart the entries of two matrices of one element may be."""


@torch.no_grad()
def change_of_answers(trained: Trained, split: Split, limit: int) -> dict[str, Any]:
    """The relative change of answers over all pairs of copies of up to `limit` images, each interpolated once.

    Over all pairs and the worst one, over those that differ by elements of the network's grid and over those between;
    the share of images whose predicted class differs; and the floor, which is the same over copies that were moved
    back, as upright as the images and interpolated twice. None is undefined: an answer that is always the same, or no
    pair of that kind.
    """
    copies, classes = copies_of(trained), trained.signature.kind == "classes"
    outputs = _answers(trained, split, copies, limit)
    on = on_grid(grid_of(trained), copies)
    every = output_change(outputs, classes=classes)
    found: dict[str, Any] = {
        "copies": len(copies.elements),
        "relative_output_change": every.mean,
        "relative_output_change_worst": every.worst,
        "relative_output_change_on_grid": output_change(outputs, classes=classes, pairs=on).mean,
        "relative_output_change_between_grid": output_change(outputs, classes=classes, pairs=~on).mean,
    }
    if classes:
        found["changed_predictions"] = changed_predictions(outputs)
    back = _answers(trained, split, copies, min(limit, FLOOR_IMAGES), back=True)
    found["interpolation_floor"] = output_change(back, classes=classes).mean
    return {name: defined(value) for name, value in found.items()}


def _answers(trained: Trained, split: Split, copies: Moves, limit: int, back: bool = False) -> Tensor:
    """The network's answers to every copy of the images, (K, N, outputs); `back`, to copies that were moved back.

    As for accuracies, each image is cut to the disc that stays in view and lies on the colour of its rim.
    """
    device, group = next(trained.parameters()).device, copies.group
    found: list[Tensor] = []
    for images, _ in batches(split, limit):
        inside, around = in_disc(images.to(device), max(1.0, magnification(group, copies.elements)))
        outputs = []
        for element in copies.elements:
            copy = moved(inside, group, element)
            copy = moved(copy, group, element, back=True) if back else copy
            outputs.append(outputs_of(trained, copy + around).cpu())
        found.append(torch.stack(outputs))
    return torch.cat(found, 1)


def grid_of(network: nn.Module) -> Grid | None:
    """The grid of a network's first layer on a group."""
    return next((layer.grid for layer in network.modules() if isinstance(layer, Lift | GConv)), None)


def on_grid(grid: Grid | None, copies: Moves) -> Tensor:
    """Which pairs of copies differ by an element that leads from one of the grid to another one: booleans (K, K)."""
    between = _steps(copies.group, copies.elements)  # (K, K, d, d)
    if grid is None or len(grid) == 1:
        return torch.zeros(between.shape[:2], dtype=torch.bool)
    known = _steps(grid.group, grid.elements).flatten(0, 1)
    off = torch.stack([(known.flatten(1) - step).abs().amax(1).min() for step in between.flatten(0, 1).flatten(1)])
    return off.view(between.shape[:2]) < SAME


def _steps(group: Group, elements: Tensor) -> Tensor:
    """The matrices of h_j h_i⁻¹: (N, N, d, d), at [i, j]."""
    matrices = group.matrix(elements.double())
    return matrices @ torch.linalg.inv(matrices).unsqueeze(1)


def defined(value: float) -> float | None:
    """A number, or None for NaN, which is undefined and which JSON does not know."""
    return None if math.isnan(value) else value
