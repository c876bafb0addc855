"""How far each layer of a trained network is from equivariant: `liespline evaluate --layers`."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...groups import Group
from ...nn import GConv, Lift
from ...testing.measure import levels, relative
from ...testing.probe import Followed, by_element, constant_inside, followed, layer_outputs, matches, with_inside
from ..data import Split, as_float
from ..runs.trained import Trained
from ..transforms import Scene
from .elements import copies_of, defined, grid_of

IMAGES = 16
BASE = -0.19
"""Of the algebra, along each of its axes: by so much images are transformed before all else, angles by 11°."""
Part = tuple[Followed | None, Tensor]
"""A layer's error and floor under an element, and which elements of its grid have a counterpart there."""


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
    modules = dict(trained.network.named_modules())
    layers: dict[str, nn.Module] = {name: m for name, m in modules.items() if isinstance(m, Lift | GConv)}
    if not layers:
        layers = {name: m for name, m in modules.items() if isinstance(m, nn.Conv2d | nn.Conv3d)}
    group, base, steps = _steps(trained)
    there = group.product(steps, base)
    images = images.to(next(trained.parameters()).device)
    scene = Scene.disc(images, group, torch.cat([base.unsqueeze(0), there]))
    reference = _features(trained, layers, scene.copy(base))
    parts: dict[str, list[Part]] = {name: [] for name in layers}
    for step, element in zip(steps, there, strict=True):
        found = _features(trained, layers, scene.copy(element))
        for name, layer in layers.items():
            parts[name].append(_under(step, group, layer, found[name], reference[name]))
    return [
        {"layer": name, "kind": type(layer).__name__, **_summary(parts[name], reference[name])}
        for name, layer in layers.items()
    ]


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


def _features(trained: Trained, layers: dict[str, nn.Module], images: Tensor) -> dict[str, Tensor]:
    """What the layers give, (B, C, N, *space), or their means over space of two samples."""
    found = zip(layers.items(), layer_outputs(trained, list(layers.values()), images), strict=True)
    return {
        name: with_inside(maps if isinstance(layer, Lift | GConv) else maps.unsqueeze(2)).cpu()
        for (name, layer), maps in found
    }


def _under(step: Tensor, group: Group, layer: nn.Module, actual: Tensor, source: Tensor) -> Part:
    """The maps for images that were transformed by a step, beside the maps from before transformed by it."""
    grid, level = getattr(layer, "out_grid", None), levels(source)
    to, origin = matches(grid, step) if grid is not None and len(grid) > 1 else torch.zeros(2, 1, dtype=torch.long)
    found = followed((actual - level)[:, :, to], (source - level)[:, :, origin], group, step)
    return found, to if found else to[:0]


def _summary(parts: Sequence[Part], reference: Tensor) -> dict[str, Any]:
    found = [(part, to) for part, to in parts if part]
    every = [part.error for part, _ in found] if not constant_inside(reference) else []
    count = reference.shape[2]
    each = by_element([(to, part.each) for part, to in found], count, every) if every and count > 1 else ()
    return {
        "mean error": defined(relative(every)),
        "worst error": max((relative([error], every) for error in every), default=None),
        "floor": defined(relative([part.floor for part, _ in found], every)),
        "by element": [defined(error) for error in each],
        "left out": sum(count - len(to) for _, to in parts),
        "of": len(parts) * count,
    }
