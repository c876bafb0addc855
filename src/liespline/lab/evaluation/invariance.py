"""How a network's accuracy and output hold when its images are transformed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...grids import Grid
from ...groups import Group
from ...nn import GConv, Lift
from ...testing.measure import changed_predictions, output_change
from ..data import Split, as_float
from ..runs.trained import Trained
from ..transforms import Scene, in_view
from .elements import Elements, copies_of
from .scores import batches, outputs_of, predictions, scores

FLOOR_IMAGES = 100
MAP_IMAGES = {1: 16, 2: 16, 3: 4}
MOST_POINTS = 4096
"""Of an image at which maps are compared."""
SAME = 1e-4
"""How far apart the entries of two matrices of one element may be."""


def accuracies(trained: Trained, split: Split, elements: Elements, limit: int) -> dict[str, Any]:
    """Accuracy of a classifier under each element and over all of them, on up to `limit` images.

    Each image is first cut to the largest disc that stays in view under all elements; around it lies the mean colour of
    the disc's rim. So nothing moves in or out, and upright images are cut like all others. `upright` is the accuracy on
    the same images whole, `scores` are those of all images that are transformed, each as often as it is.
    """
    whole, targets = predictions(trained, split, limit)
    outputs = torch.cat(list(_of_copies(trained, split, elements, limit)), 1)  # (K, N, classes)
    accuracy = (outputs.argmax(-1) == targets).double().mean(1).tolist()
    over_all = scores(trained, [(own, targets) for own in outputs[1:]])
    return {
        "axis": elements.axis,
        "labels": list(elements.labels),
        "accuracy": accuracy,
        "mean_accuracy": sum(accuracy) / len(accuracy),
        "upright": float((whole.argmax(-1) == targets).double().mean()),
        "images": len(targets),
        "scores": {name: value for name, value in over_all.items() if name != "loss"},
    }


def relative_change(trained: Trained, split: Split, limit: int) -> dict[str, Any]:
    """The relative change of the output over all pairs of copies of up to `limit` images, each interpolated once.

    Over all pairs and the worst one, over those that differ by elements of the network's grid and over those between;
    the share of images whose predicted class differs; and the floor, which is the same over copies that were
    transformed there and back, as upright as the images and interpolated twice. None is undefined: an output that is
    always the same, or no pair of that kind.

    Maps are brought back to where they lie in the image, and their points in view take the place of images: the spread
    is that over all of them.
    """
    kind = trained.signature.kind
    classes, maps = kind in ("classes", "masks"), kind in ("masks", "points")
    copies = copies_of(trained, few=maps)
    images, floor_images = (len(split),) * 2 if maps else (limit, min(limit, FLOOR_IMAGES))
    of_copies = _at_points if maps else _of_copies
    parts = list(of_copies(trained, split, copies, images))
    if not parts:  # no image has a sample in view
        return {"relative_output_change": None}
    outputs = torch.cat(parts, 1)
    back = torch.cat(list(of_copies(trained, split, copies, floor_images, there_and_back=True)), 1)
    on = on_grid(grid_of(trained), copies)
    every = output_change(outputs, classes=classes)
    found: dict[str, float] = {
        "copies": len(copies.values),
        "relative_output_change": every.mean,
        "relative_output_change_worst": every.worst,
        "relative_output_change_on_grid": output_change(outputs, classes=classes, pairs=on).mean,
        "relative_output_change_between_grid": output_change(outputs, classes=classes, pairs=~on).mean,
        "interpolation_floor": output_change(back, classes=classes).mean,
    }
    found |= {"changed_predictions": changed_predictions(outputs)} if classes else {}
    return {name: defined(value) for name, value in found.items()}


@torch.no_grad()
def _of_copies(
    trained: Trained, split: Split, elements: Elements, limit: int, there_and_back: bool = False
) -> Iterator[Tensor]:
    """The outputs (K, B, …) for every copy of one batch of images after the other, each cut to the disc in view."""
    device = next(trained.parameters()).device
    for images, _ in batches(split, limit):
        scene = Scene.disc(images.to(device), elements.group, elements.values)
        yield torch.stack([outputs_of(trained, scene.copy(h, there_and_back)).cpu() for h in elements.values])


@torch.no_grad()
def _at_points(
    trained: Trained, split: Split, elements: Elements, limit: int, there_and_back: bool = False
) -> Iterator[Tensor]:
    """The maps for every copy at the points in view of one image after the other: (K, points, outputs)."""
    device, group = next(trained.parameters()).device, elements.group
    limit = min(limit, MAP_IMAGES[len(split.space)])
    for number in range(limit):
        image = as_float(split[number * len(split) // limit][0].unsqueeze(0)).to(device)
        points = in_view(image.shape[2:]).flatten().nonzero()[:, 0].to(device)
        if not len(points):
            continue
        points = points[:: -(-len(points) // MOST_POINTS)]
        network: Callable[[Tensor], Tensor]
        if trained.signature.kind == "masks":
            scene, network = Scene.mirrored(image, group), trained.in_tiles
        else:  # landmarks, whose images may shrink
            scene, network = Scene.disc(image, group, elements.values), partial(outputs_of, trained)
        maps = [scene.maps(network, h, there_and_back)[0] for h in elements.values]
        yield torch.stack([one.flatten(1)[:, points].T.cpu() for one in maps])


def grid_of(network: nn.Module) -> Grid | None:
    """The grid of a network's first layer on a group."""
    return next((layer.grid for layer in network.modules() if isinstance(layer, Lift | GConv)), None)


def on_grid(grid: Grid | None, copies: Elements) -> Tensor:
    """Which pairs of copies differ by an element that leads from one of the grid to another one: booleans (K, K)."""
    between = _steps(copies.group, copies.values)  # (K, K, d, d)
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
