"""By how much answers that are maps, masks above all, change between copies of an image that lie differently."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ...testing.measure import changed_predictions, output_change
from ...testing.moving import continued
from ..data import Split, as_float
from ..data.mask_split import MaskSplit
from ..moving import in_disc, magnification, moved
from ..runs.trained import Trained
from .moves import Moves, copies_of
from .output_change import defined, grid_of, on_grid
from .scores import outputs_of
from .turned_masks import in_view, turned_image

MAP_IMAGES = {1: 16, 2: 16, 3: 4}
MOST_POINTS = 4096
"""Of an image at which maps are compared."""


@torch.no_grad()
def change_of_maps(trained: Trained, split: Split) -> dict[str, Any]:
    """As `change_of_answers`, of the logits at each point in view, brought back to where they lie in the image.

    Copies are few, and so are images. Points take the place of images: the spread is that over all of them. For the
    floor, images and maps are moved there and back.
    """
    copies, classes = copies_of(trained, few=True), trained.signature.kind == "masks"
    each = [list(_at_points(trained, split, copies, way)) for way in (False, True)]
    if not each[0]:  # no image has a sample in view
        return {"relative_output_change": None}
    answers, back = (torch.cat(parts, 1) for parts in each)
    on = on_grid(grid_of(trained), copies)
    every = output_change(answers, classes=classes)
    found: dict[str, Any] = {
        "relative_output_change": every.mean,
        "relative_output_change_worst": every.worst,
        "relative_output_change_on_grid": output_change(answers, classes=classes, pairs=on).mean,
        "relative_output_change_between_grid": output_change(answers, classes=classes, pairs=~on).mean,
        "interpolation_floor": output_change(back, classes=classes).mean,
    }
    found |= {"changed_predictions": changed_predictions(answers)} if classes else {}
    return {name: defined(value) for name, value in found.items()}


def _at_points(trained: Trained, split: Split, copies: Moves, back: bool) -> Iterator[Tensor]:
    """The logits of every copy at the points of one image after the other: (K, points, outputs)."""
    answer = _mask if isinstance(split, MaskSplit) else _heatmaps
    limit = min(len(split), MAP_IMAGES[len(split.space)])
    for number in range(limit):
        image = as_float(split[number * len(split) // limit][0].unsqueeze(0)).to(next(trained.parameters()).device)
        points = in_view(image.shape[2:]).flatten().nonzero()[:, 0]
        if not len(points):
            continue
        points = points[:: -(-len(points) // MOST_POINTS)].to(image.device)
        maps = [answer(trained, image, copies, h, back) for h in copies.elements]
        yield torch.stack([one[0].flatten(1)[:, points].T.cpu() for one in maps])


def _mask(trained: Trained, image: Tensor, copies: Moves, h: Tensor, back: bool) -> Tensor:
    """h⁻¹·f(h·x), logits of classes; `back`: of h⁻¹·h·x, and they too moved there and back."""
    group, undone = copies.group, copies.group.inverse(h)
    copy = turned_image(image, group, h)
    maps = trained.in_tiles(turned_image(copy, group, undone) if back else copy).float()
    return turned_image(turned_image(maps, group, h) if back else maps, group, undone)


def _heatmaps(trained: Trained, image: Tensor, copies: Moves, h: Tensor, back: bool) -> Tensor:
    """The same for landmarks, whose images may shrink: in the disc that stays in view, on the colour of its rim."""
    group, space = copies.group, image.shape[2:]
    inside, around = in_disc(image, max(1.0, magnification(group, copies.elements)))
    copy = moved(inside, group, h)
    maps = outputs_of(trained, (moved(copy, group, h, back=True) if back else copy) + around)
    maps = moved(continued(maps), group, h, space) if back else maps
    return moved(continued(maps), group, h, space, back=True)
