"""Segmentation of whole images and volumes: the one way that validation, `evaluate` and `predict` go."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .data.arrays import Array
from .data.mask_split import Whole
from .data.scans import Reading, cube_side
from .networks import Signature
from .runs.trained import Trained
from .tasks.objectives import Objective

UNLIKE = 4.0
"""Scans of one kind differ by a factor of two or three in the side of a voxel, wrong units and spacings left out by ten
or a thousand: what lies between this factor and its inverse is not remarked on."""


class Scored(NamedTuple):
    """The loss of an image and the number of samples behind it, and its classes (*own) beside the true ones."""

    loss: Tensor
    samples: int
    found: Tensor
    true: Tensor


@torch.no_grad()
def segmented(
    trained: Trained, image: Tensor, space: Sequence[int], spacing: Sequence[float], side: int | None = None
) -> tuple[Tensor, Array]:
    """Logits (1, K, *samples) of an image (1, C, *samples), and the classes of its own voxels: `space` of `spacing`."""
    logits = trained.in_tiles(image, side).float()
    found = logits.argmax(1).to(torch.uint8).cpu().numpy()
    return logits, Reading(side=trained.signature.spacing).on_own_grid(found, space, spacing)[0]


@torch.no_grad()
def scored(trained: Trained, objective: Objective, whole: Whole) -> Scored:
    """The loss on the network's grid, the classes on the image's own: that is what `predict` writes and users have."""
    # Mixed precision is for training: `evaluate` and `predict` compute in full, and scores are to be theirs.
    with torch.autocast(whole.image.device.type, enabled=False):
        logits, found = segmented(trained, whole.image, whole.own.shape, whole.spacing)
        loss = objective.loss(logits, whole.mask)
    return Scored(loss, whole.mask.numel(), torch.from_numpy(found).to(whole.own.device), whole.own)


def unlike_voxels(signature: Signature, spacing: Sequence[float]) -> str | None:
    """What is to be said of voxels that are of another size altogether than those of training; None if they are not."""
    usual = signature.voxels or signature.spacing
    if usual is None or 1 / UNLIKE <= cube_side(spacing) / usual <= UNLIKE:
        return None
    return (
        f"has voxels of {cube_side(spacing):.3g} mm, the network was trained on voxels of {usual:.3g} mm: what it can "
        "recognise has another size there; check the spacing and its unit before you use the prediction"
    )
