"""Images and volumes whole, with their masks, one at a time: they have different sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import Dataset

from .ragged import Ragged
from .rows import Array


class Whole(NamedTuple):
    """An image (1, C, *space) and its mask (1, *space) as the network sees them, and the mask as it is stored.

    `own` (*own) lies on the image's own grid, whose voxels have this `spacing` in millimetres.
    """

    image: Tensor
    mask: Tensor
    own: Tensor
    spacing: tuple[float, ...]


class Wholes(Dataset[Whole]):
    """Every image of a split, in order."""

    def __init__(self, items: Ragged, rows: Array) -> None:
        self.items, self.rows = items, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Whole:
        row = int(self.rows[index])
        image, mask, own = self.items.image(row), self.items.mask(row), self.items.own_mask(row)
        tensors = torch.from_numpy(image)[None], torch.from_numpy(mask)[None].long(), torch.from_numpy(own)
        return Whole(*tensors, self.items.spacings[row])

    def __getitems__(self, indices: Sequence[int]) -> Whole:
        """The one image that is asked for, as a loader of batches does."""
        (index,) = indices
        return self[index]
