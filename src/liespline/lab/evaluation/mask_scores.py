"""Masks of whole images against the truth, class by class, and how they follow when the image is turned."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchmetrics import MeanMetric

from ...groups import O2, O3, SO2, SO3
from ..data.mask_split import MaskSplit
from ..runs.per_image import pack
from ..runs.trained import Trained
from ..tasks import find_task
from ..tasks.masks import MaskScores
from ..whole import scored
from .turned_masks import dice, under_turns

TURNED_IMAGES = {2: 50, 3: 8}


@torch.no_grad()
def score_masks(trained: Trained, split: MaskSplit) -> dict[str, Any]:
    """Loss, Dice, IoU and sensitivity over all voxels, the mean Dice of an image, and Dice of turned images.

    Masks are compared as they are stored, on the image's own grid; the loss and turned images are on the network's.
    """
    device = next(trained.parameters()).device
    objective = find_task(trained.config).objective(trained.config, trained.signature).eval()
    table, loss, single = MaskScores(split.classes), MeanMetric(), []
    wholes = split.to_pick_by()
    for index in range(len(wholes)):
        whole = wholes[index]
        found = scored(trained, objective, whole._replace(image=whole.image.to(device), mask=whole.mask.to(device)))
        table.update(found.found, found.true)
        loss.update(found.loss, found.samples)
        own = MaskScores(split.classes)
        own.update(found.found, found.true)
        single.append(own.compute())
    scores = {"loss": float(loss.compute()), "dice": float(table.compute())}
    scores |= {"dice_per_image": float(torch.stack(single).mean())} | table.per_class()
    results = {"scores": scores, "confusion": table.confmat.tolist(), "rotated_masks": turned_scores(trained, split)}
    return results | {"per_image": pack(split.names, dice=torch.stack(single))}


def turned_scores(trained: Trained, split: MaskSplit) -> dict[str, float]:
    """Mean Dice inside the disc in view: of images as they lie, of the same ones turned, and of the two answers.

    Networks for reflections are turned as they are, and mirrored first.
    """
    device, d = next(trained.parameters()).device, len(split.space)
    mirrors = trained.config.network.group in ("o2", "o3")
    group = (O2() if mirrors else SO2()) if d == 2 else O3() if mirrors else SO3()
    algebra = torch.tensor([[0.25]]) if d == 2 else torch.tensor([[0.25, 0, 0], [0, 0.25, 0], [0.15, -0.15, 0.15]])
    elements = group.exp(torch.pi * algebra.double())  # by 45°
    elements = group.product(elements, group.representatives(dtype=torch.float64).unsqueeze(1)).flatten(0, 1)
    limit = min(len(split), TURNED_IMAGES[d])
    total: dict[str, Tensor] = {}
    for index in range(limit):
        image, mask = split[index * len(split) // limit]
        tables = under_turns(
            trained.in_tiles, image[None].to(device), mask[None].to(device), group, elements, len(split.classes)
        )
        for kind, found in tables.items():
            total[kind] = total.get(kind, torch.zeros(())) + torch.stack(found).sum(0)
    return {"images": limit, **{kind: float(dice(table)[1:].nanmean()) for kind, table in total.items()}}
