"""Masks of whole images against the truth, class by class, and how they follow when the image is rotated."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchmetrics import MeanMetric

from ...groups import O2, O3, SO2, SO3, Group
from ..data.mask_split import MaskSplit
from ..runs.trained import Trained
from ..segmentation import scored
from ..tasks import find_task
from ..tasks.masks import MaskScores, confusions, dice
from ..transforms import Scene, in_view
from .cases import Row, largest_components, rows_of_case
from .elements import defined
from .evaluate import pack

ROTATED_IMAGES = {2: 50, 3: 8}
COMPARED = ("upright", "rotated", "rotation_consistency")


@torch.no_grad()
def score_masks(
    trained: Trained, split: MaskSplit, cases: list[Row] | None = None, largest: bool = False
) -> dict[str, Any]:
    """Loss, Dice, IoU and sensitivity over all voxels, the mean Dice of an image, and Dice of rotated images.

    Masks are compared as they are stored, on the image's own grid; the loss and rotated images are on the network's.
    Rows of single images are added to `cases`; with `largest`, each class has its largest component alone.
    """
    device = next(trained.parameters()).device
    objective = find_task(trained.config).objective(trained.config, trained.signature).eval()
    table, loss, single = MaskScores(split.classes), MeanMetric(), []
    wholes = split.to_pick_by()
    for index in range(len(wholes)):
        whole = wholes[index]
        result = scored(trained, objective, whole._replace(image=whole.image.to(device), mask=whole.mask.to(device)))
        found = largest_components(result.found.numpy()) if largest else result.found.numpy()
        if cases is not None:
            cases += rows_of_case(split.names[index], found, result.true.numpy(), split.classes, whole.spacing)
        own = MaskScores(split.classes)
        for counter in (table, own):
            counter.update(torch.from_numpy(found), result.true)
        loss.update(float(result.loss), result.samples)  # counted on the CPU, wherever the network is
        single.append(own.compute())
    scores = {"loss": float(loss.compute()), "dice": float(table.compute())}
    scores |= {"dice_per_image": float(torch.stack(single).mean())} | table.per_class()
    results = {"scores": scores, "confusion": table.table.tolist(), "rotated_masks": rotated_scores(trained, split)}
    return results | {"per_image": pack(split.names, dice=torch.stack(single))}


def rotated_scores(trained: Trained, split: MaskSplit) -> dict[str, float | None]:
    """Mean Dice inside the disc in view, of images rotated by 45°: see `under_rotations`.

    None is undefined: no class but the first is there or predicted. Networks for reflections are shown rotated images,
    and those reflected first.
    """
    device, d = next(trained.parameters()).device, len(split.space)
    reflected = trained.config.network.group in ("o2", "o3")
    group: Group = (O2() if reflected else SO2()) if d == 2 else O3() if reflected else SO3()
    algebra = torch.tensor([[0.25]]) if d == 2 else torch.tensor([[0.25, 0, 0], [0, 0.25, 0], [0.15, -0.15, 0.15]])
    elements = group.exp(torch.pi * algebra.double())
    elements = group.product(elements, group.representatives(dtype=torch.float64).unsqueeze(1)).flatten(0, 1)
    limit = min(len(split), ROTATED_IMAGES[d])
    tables = torch.zeros(len(COMPARED), len(split.classes), len(split.classes), dtype=torch.long)
    for index in range(limit):
        image, mask = (one.unsqueeze(0).to(device) for one in split[index * len(split) // limit])
        tables += under_rotations(trained.in_tiles, image, mask, group, elements, len(split.classes)).sum(0)
    means = dice(tables)[:, 1:].nanmean(1).tolist()
    return {"images": limit} | {name: defined(mean) for name, mean in zip(COMPARED, means, strict=True)}


@torch.no_grad()
def under_rotations(
    network: Callable[[Tensor], Tensor], images: Tensor, masks: Tensor, group: Group, elements: Tensor, classes: int
) -> Tensor:
    """What is compared per rotation h, voxel by voxel inside the disc: tables of truth by prediction (H, 3, K, K).

    "upright": the prediction f(x) against the truth. "rotated": h⁻¹·f(h·x) against the truth.
    "rotation_consistency": h⁻¹·f(h·x) against f(x), the equivariance of the masks, which needs no truth.
    """
    inside, scene = in_view(images.shape[2:]).to(images.device), Scene.mirrored(images, group)
    upright, tables = network(images).argmax(1), []
    for element in elements:
        back = scene.maps(network, element).argmax(1)
        pairs = ((upright, masks), (back, masks), (back, upright))
        tables.append(torch.stack([confusions(found, true, classes, inside).cpu() for found, true in pairs]))
    return torch.stack(tables)
