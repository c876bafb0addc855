"""`liespline equivariance`: how far each layer of a trained network is from equivariant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...grids import Grid
from ...nn import GConv, Lift
from ..data import as_float
from ..moving import in_disc, magnification, moved, shown
from ..runs.data import read_record
from ..runs.trained import Trained, load
from .evaluate import test_split

IMAGES = 16


def measure(checkpoint: Path, data: Path | None = None) -> list[dict[str, Any]]:
    """Errors of every layer and of the answer, over test images moved by the elements of the grid."""
    trained = load(checkpoint)
    config = trained.config.updated(data=None if data is None else str(data))
    _, split = test_split(config, read_record(checkpoint if checkpoint.is_dir() else checkpoint.parent))
    images = as_float(split.__getitems__(list(range(min(IMAGES, len(split)))))[0])
    return layer_errors(trained, images)


@torch.no_grad()
def layer_errors(trained: Trained, images: Tensor) -> list[dict[str, Any]]:
    """For each layer ‖L(h·f) − h·L(f)‖ / ‖h·L(f)‖ from the image to that layer, mean and worst over moves h.

    Maps are compared where the moved image shows them, within its largest disc. The moves lead from the first
    element of the grid to each other one; output elements without a counterpart are left out.
    """
    names = {module: name for name, module in trained.network.named_modules()}
    layers = [m for m in trained.network.modules() if isinstance(m, Lift | GConv)]
    if not layers or len(layers[0].grid) == 1:
        return [{"layer": "(no group)", "kind": "plain network", "mean error": 0.0, "worst error": 0.0}]
    grid = layers[0].grid
    group, first = grid.group, grid.elements[:1]
    moves = group.product(grid.elements[1:], group.inverse(first))
    # Only what stays in view is moved, or the answer would change with what moves in.
    inside, around = in_disc(images, magnification(group, moves))
    reference = _features(trained, layers, inside + around)
    errors: dict[nn.Module, list[float]] = {layer: [] for layer in layers}
    answers = []
    for move in moves:
        found = _features(trained, layers, moved(inside, group, move) + around)
        for layer in layers:
            pairs = _counterparts(layer.out_grid, move)
            source = torch.stack([reference[layer][:, :, b] for b, _ in pairs], 2)
            expected = moved(source.flatten(1, 2), group, move)
            actual = torch.stack([found[layer][:, :, c] for _, c in pairs], 2).flatten(1, 2)
            errors[layer].append(_relative(actual, expected, shown(actual.shape[2:], group, move)))
        expected, disc = reference[trained], None
        if expected.ndim > 2:  # a map moves with the image, an answer about the image stays
            expected, disc = moved(expected, group, move), shown(expected.shape[2:], group, move)
        answers.append(_relative(found[trained], expected, disc))
    rows = [{"layer": names[layer], "kind": type(layer).__name__, **_summary(errors[layer])} for layer in layers]
    return [*rows, {"layer": "output", "kind": "answer", **_summary(answers)}]


def _features(trained: Trained, layers: list[Lift | GConv], images: Tensor) -> dict[nn.Module, Tensor]:
    seen: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        seen[module] = output

    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        seen[trained] = trained(images)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def _counterparts(grid: Grid, move: Tensor) -> list[tuple[int, int]]:
    """Pairs (b, c) of elements with h_c = move · h_b."""
    group = grid.group
    distance = group.offset(grid.elements.unsqueeze(1), group.product(move, grid.elements)).norm(dim=-1)  # (c, b)
    return [(b, int(c)) for b, c in enumerate(distance.argmin(0)) if float(distance[c, b]) < 1e-6]


def _relative(actual: Tensor, expected: Tensor, inside: Tensor | None = None) -> float:
    if inside is not None and inside.any():
        actual, expected = actual[..., inside], expected[..., inside]
    elif inside is not None:  # a map of two samples has no inside; its mean over space must stay the same
        actual, expected = actual.flatten(2).mean(-1), expected.flatten(2).mean(-1)
    return float((actual - expected).norm() / expected.norm())


def _summary(errors: list[float]) -> dict[str, float]:
    return {"mean error": sum(errors) / len(errors), "worst error": max(errors)}
