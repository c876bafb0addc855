"""`liespline equivariance`: how far each layer of a trained network is from equivariant, and its output too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...grids import Grid
from ...groups import Group
from ...nn import GConv, Lift
from ...testing.measure import Compared, compared, constant, levels, relative
from ...testing.moving import interior
from ...testing.probe import followed, with_inside
from ..data import Split, as_float
from ..moving import in_disc, magnification, moved
from ..runs.folder import Run
from ..runs.trained import Trained, load
from ..session import Session
from .evaluate import MOVED_IMAGES
from .map_change import change_of_maps
from .moves import copies_of
from .output_change import change_of_answers, defined, grid_of

IMAGES = 16
COLUMNS = ("layer", "kind", "mean error", "worst error", "floor", "left out")
BASE = -0.19
"""Of the algebra, along each of its axes: by so much images are moved before all else, angles by 11°."""


def measure(checkpoint: Path, data: Path | None = None) -> list[dict[str, Any]]:
    """Errors of every layer and of the answer, over test images that are moved."""
    trained = load(checkpoint)
    config = trained.config.updated(data=None if data is None else str(data))
    split = Session(config, manifest=Run(checkpoint if checkpoint.is_dir() else checkpoint.parent).manifest()).test
    images = as_float(split.__getitems__(list(range(min(IMAGES, len(split)))))[0])
    return [*layer_errors(trained, images), *answer_errors(trained, split)]


def cells(row: dict[str, Any]) -> list[str]:
    """A row for people."""
    of = {name: row[name] for name in ("mean error", "worst error", "floor")}
    absent = "–" if row["layer"] == "output" and row["mean error"] is not None else "undefined"
    numbers = [absent if value is None else f"{value:.2e}" for value in of.values()]
    return [row["layer"], row["kind"], *numbers, f"{row['left out']} of {row['of']}" if row["left out"] else "–"]


def answer_errors(trained: Trained, split: Split) -> list[dict[str, Any]]:
    """What `liespline evaluate` says of the answers: over all pairs of copies, those on the grid and those between."""
    if trained.signature.kind in ("masks", "points"):
        found = change_of_maps(trained, split)
    else:
        found = change_of_answers(trained, split, MOVED_IMAGES)
    shown = {
        "all pairs of copies": ("relative_output_change", "relative_output_change_worst", "interpolation_floor"),
        "pairs on the grid": ("relative_output_change_on_grid",),
        "pairs between the grid": ("relative_output_change_between_grid",),
    }
    rows = []
    for kind, names in shown.items():
        mean, worst, floor = (found[name] for name in names) if len(names) > 1 else (found[names[0]], None, None)
        if mean is not None or len(names) > 1:
            row = {"layer": "output", "kind": kind, "mean error": mean, "worst error": worst, "floor": floor}
            rows.append(row | {"left out": 0, "of": 0})
    if "changed_predictions" in found:
        rows[0]["changed predictions"] = found["changed_predictions"]
    return rows


@torch.no_grad()
def layer_errors(trained: Trained, images: Tensor) -> list[dict[str, Any]]:
    """For each layer L(h·f) − h·L(f) over the standard deviation of h·L(f): over the moves h, and the worst one.

    As `testing.measure_equivariance` does it: about the channels' means, in the middle half of the maps, and beside it
    the floor, which is what moving the maps there and back costs. All images were moved by the same small step first,
    so that each is interpolated once. The moves lead from the first element of the grid to each other one; output
    elements without a counterpart are left out and counted. Maps of a network without a group are moved as the copies
    that its answers are compared on.
    """
    names = {module: name for name, module in trained.network.named_modules()}
    layers: list[nn.Module] = [m for m in trained.network.modules() if isinstance(m, Lift | GConv)]
    layers = layers or [m for m in trained.network.modules() if isinstance(m, nn.Conv2d | nn.Conv3d)]
    group, base, moves = _moves(trained)
    there = group.product(moves, base)
    inside, around = in_disc(images, max(1.0, magnification(group, torch.cat([base.unsqueeze(0), there]))))
    reference = _features(trained, layers, moved(inside, group, base) + around)
    parts: dict[nn.Module, list[_Part]] = {layer: [] for layer in layers}
    for move, element in zip(moves, there, strict=True):
        found = _features(trained, layers, moved(inside, group, element) + around)
        for layer in layers:
            grid = getattr(layer, "out_grid", None)
            pairs = _counterparts(grid, move) if grid is not None and len(grid) > 1 else [(0, 0)]
            parts[layer].append(_Part(found[layer], reference[layer], group, move, pairs))
    return [{"layer": names[m], "kind": type(m).__name__, **_summary(parts[m], reference[m])} for m in layers]


def _moves(trained: Trained) -> tuple[Group, Tensor, Tensor]:
    """The group that images are moved by, the step that comes before all else, and the moves after it."""
    grid = grid_of(trained)
    if grid is None or len(grid) == 1:
        copies = copies_of(trained)
        group, base, elements = copies.group, copies.elements[0], copies.elements
        return group, base, group.product(elements[1:], group.inverse(base))
    group, elements = grid.group, grid.elements
    base = group.exp(torch.full((group.dim,), BASE, dtype=torch.float64))
    return group, base, group.product(elements[1:], group.inverse(elements[:1]))


def _features(trained: Trained, layers: Sequence[nn.Module], images: Tensor) -> dict[nn.Module, Tensor]:
    """What the layers give, (B, C, N, *space), or their means over space of two samples."""
    seen: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        maps = output if isinstance(module, Lift | GConv) else output.unsqueeze(2)
        seen[module] = with_inside(maps)

    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        trained(images)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


class _Part:
    """One layer under one move: its maps after it at c beside those before it at b, for pairs (b, c) of elements."""

    def __init__(
        self, actual: Tensor, source: Tensor, group: Group, move: Tensor, pairs: Sequence[tuple[int, int]]
    ) -> None:
        level, self.total = levels(source), source.shape[2]
        actual, source = actual - level, source - level
        before, after = ([pair[i] for pair in pairs] for i in (0, 1))
        self.both = followed(actual[:, :, after], source[:, :, before], group, move)
        self.count = len(pairs) if self.both else 0
        self.single: dict[int, Compared] = {}
        if self.count < self.total:  # where a grid has ends, those next to them lack neighbours
            each = {c: followed(actual[:, :, c : c + 1], source[:, :, b : b + 1], group, move) for b, c in pairs}
            self.single = {c: both[0] for c, both in each.items() if both}


def _counterparts(grid: Grid, move: Tensor) -> list[tuple[int, int]]:
    """Pairs (b, c) of elements with h_c = move · h_b."""
    group = grid.group
    distance = group.offset(grid.elements.unsqueeze(1), group.product(move, grid.elements)).norm(dim=-1)  # (c, b)
    return [(b, int(c)) for b, c in enumerate(distance.argmin(0)) if float(distance[c, b]) < 1e-6]


def _summary(parts: Sequence[_Part], reference: Tensor) -> dict[str, Any]:
    inner = reference[..., interior(reference.shape[3:])]
    defined_here = not constant(compared(inner, inner).spread / inner.numel(), inner)
    both = [part.both for part in parts if part.both]
    every = [error for error, _ in both] if defined_here else []
    each = [relative([error], every) for error in every]
    found: dict[str, Any] = {
        "mean error": defined(relative(every)),
        "worst error": max(each) if each else None,
        "floor": defined(relative([floor for _, floor in both], every)),
        "left out": sum(part.total - part.count for part in parts),
        "of": sum(part.total for part in parts),
    }
    elements = sorted({c for part in parts for c in part.single}) if every else []
    if elements:
        of = {c: [part.single[c] for part in parts if c in part.single] for c in elements}
        found["by element"] = {c: defined(relative(errors, every)) for c, errors in of.items()}
    return found
