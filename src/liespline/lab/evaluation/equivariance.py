"""How far each layer of a trained network is from equivariant: `liespline evaluate --layers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...groups import Group
from ...nn import GConv, Lift
from ...testing.measure import Compared, compared, constant, levels, relative
from ...testing.moving import interior
from ...testing.probe import followed, matches, with_inside
from ..data import Split, as_float
from ..runs.trained import Trained
from ..transforms import Scene
from .elements import copies_of
from .invariance import defined, grid_of

IMAGES = 16
BASE = -0.19
"""Of the algebra, along each of its axes: by so much images are transformed before all else, angles by 11°."""


def first_images(split: Split) -> Tensor:
    """The images that layers are compared on."""
    return as_float(split.__getitems__(list(range(min(IMAGES, len(split)))))[0])


@torch.no_grad()
def layer_errors(trained: Trained, images: Tensor) -> list[dict[str, Any]]:
    """For each layer L(h·f) − h·L(f) over the standard deviation of h·L(f): over the elements h, and the worst one.

    As `testing.measure_equivariance` does it: about the channels' means, in the middle half of the maps, and beside it
    the floor, which is what transforming the maps there and back costs. All images were transformed by the same small
    step first, so that each is interpolated once. The elements lead from the first one of the grid to each other one;
    output elements without a counterpart are left out and counted. Maps of a network without a group are transformed as
    the copies that its outputs are compared on.
    """
    names = {module: name for name, module in trained.network.named_modules()}
    layers: list[nn.Module] = [m for m in trained.network.modules() if isinstance(m, Lift | GConv)]
    layers = layers or [m for m in trained.network.modules() if isinstance(m, nn.Conv2d | nn.Conv3d)]
    group, base, steps = _steps(trained)
    there = group.product(steps, base)
    images = images.to(next(trained.parameters()).device)
    scene = Scene.disc(images, group, torch.cat([base.unsqueeze(0), there]))
    reference = _features(trained, layers, scene.copy(base))
    parts: dict[nn.Module, list[_Part]] = {layer: [] for layer in layers}
    for step, element in zip(steps, there, strict=True):
        found = _features(trained, layers, scene.copy(element))
        for layer in layers:
            parts[layer].append(_part(layer, found[layer], reference[layer], group, step))
    return [{"layer": names[m], "kind": type(m).__name__, **_summary(parts[m], reference[m])} for m in layers]


def _steps(trained: Trained) -> tuple[Group, Tensor, Tensor]:
    """The group that images are transformed by, the step that comes before all else, and the elements after it."""
    grid = grid_of(trained)
    if grid is None or len(grid) == 1:
        copies = copies_of(trained)
        group, base = copies.group, copies.values[0]
        return group, base, group.product(copies.values[1:], group.inverse(base))
    group, elements = grid.group, grid.elements
    base = group.exp(torch.full((group.dim,), BASE, dtype=torch.float64))
    return group, base, group.product(elements[1:], group.inverse(elements[:1]))


def _features(trained: Trained, layers: Sequence[nn.Module], images: Tensor) -> dict[nn.Module, Tensor]:
    """What the layers give, (B, C, N, *space), or their means over space of two samples."""
    seen: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, inputs: Any, output: Tensor) -> None:
        seen[module] = with_inside(output if isinstance(module, Lift | GConv) else output.unsqueeze(2)).cpu()

    hooks = [layer.register_forward_hook(keep) for layer in layers]
    try:
        trained(images)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


class _Part(NamedTuple):
    """One layer under one element: its maps beside those before it, and the same for single elements of its grid."""

    both: tuple[Compared, Compared] | None
    """The error and its floor, over all elements of the grid that have a counterpart."""
    left_out: int
    total: int
    single: dict[int, Compared]


def _part(layer: nn.Module, actual: Tensor, source: Tensor, group: Group, step: Tensor) -> _Part:
    grid, total, level = getattr(layer, "out_grid", None), source.shape[2], levels(source)
    to, origin = matches(grid, step) if grid is not None and len(grid) > 1 else torch.zeros(2, 1, dtype=torch.long)
    actual, source = (actual - level)[:, :, to], (source - level)[:, :, origin]
    both = followed(actual, source, group, step)
    single: dict[int, Compared] = {}
    if not both or len(to) < total:  # where a grid has ends, those next to them lack neighbours
        for i, element in enumerate(to.tolist()):
            if one := followed(actual[:, :, i : i + 1], source[:, :, i : i + 1], group, step):
                single[element] = one[0]
    return _Part(both, total - len(to) if both else total, total, single)


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
        "left out": sum(part.left_out for part in parts),
        "of": sum(part.total for part in parts),
    }
    if elements := sorted({c for part in parts for c in part.single}) if every else []:
        of = {c: [part.single[c] for part in parts if c in part.single] for c in elements}
        found["by element"] = {c: defined(relative(errors, every)) for c, errors in of.items()}
    return found
