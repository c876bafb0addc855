"""Images with masks as a split of a task: whole for scoring, in patches for training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import NamedTuple, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .arrays import Array
from .files import DataError
from .patches import MaskStore, RandomPatches, cut
from .scans import cube_side
from .split import Split
from .store import Seen

PATCH = {2: 96, 3: 32}
MOST_DRAWN = 16  # patches of one image in an epoch, if there are many images
LEAST_DRAWN = 128  # patches of all images in an epoch: few images have many voxels to train on


class MaskSplit(Split):
    """Pairs of images (C, *space) and masks (*space), of any sizes; a batch of them is of their middle patches.

    `items` hold all pairs of a set and `names` name them; the split has those of `rows`. `patch` is the side of the
    patches in samples.
    """

    def __init__(
        self, items: MaskStore, names: Sequence[str], rows: Array, patch: int | None, notes: Sequence[str], dealt: bool
    ) -> None:
        self.items, self._names, self._rows, self.notes, self.dealt = items, names, rows, tuple(notes), dealt
        self.classes, self.values = tuple(items.index["classes"].tolist()), tuple(items.index["values"].tolist())
        self.side, self.synthetic, self.kind = float(items.index["side"]) or None, False, "masks"
        channels, *space = items.shapes[0]
        self.in_channels, self.space = channels, (patch or PATCH[len(space)],) * len(space)
        self.targets = torch.from_numpy(items.counts[rows])  # voxels of each class, image by image

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        row = int(self._rows[index])
        return torch.from_numpy(self.items.image(row)), torch.from_numpy(self.items.mask(row)).long()

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The middle patches of images (B, C, *patch) and of their masks (B, *patch)."""
        images, masks = [], []
        for row in self._rows[list(indices)]:
            origin = [(n - p) // 2 for n, p in zip(self.items.shapes[row][1:], self.space, strict=True)]
            image, mask = cut(self.items, int(row), origin, self.space)
            images.append(torch.from_numpy(image))
            masks.append(torch.from_numpy(mask).long())
        return torch.stack(images), torch.stack(masks)

    @property
    def labels(self) -> list[str]:
        """Fingerprints of the masks, on the grid of the network's images."""
        return self.items.index["label"][self._rows].tolist()

    @property
    def seen(self) -> Seen:
        """Fingerprints and ranges of values of the whole images."""
        found = self.items.seen
        assert found is not None
        return found[self._rows]

    @property
    def voxels(self) -> float | None:  # type: ignore[override]
        """The side in millimetres of the usual voxel as it is stored; None for images."""
        return None if self.side is None else float(np.median([cube_side(spacing) for spacing in self.spacings]))

    @property
    def spacings(self) -> list[tuple[float, ...]]:
        """The size of the voxels of each image as it is stored, in millimetres."""
        return [self.items.spacings[int(row)] for row in self._rows]

    @property
    def sizes(self) -> list[tuple[int, ...]]:
        return [self.items.shapes[int(row)][1:] for row in self._rows]

    def among(self, classes: Sequence[str], where: str) -> Self:
        """The same pairs, if their masks mean what the network was trained on."""
        if self.classes != tuple(classes):
            known = f"the network knows {', '.join(classes)}"
            raise DataError(f"{where}: has classes {', '.join(self.classes)}; {known}: name them in classes.csv")
        return self

    def in_colours(self, channels: int, where: str) -> Self:
        """The same images, if they have so many channels."""
        if self.in_channels != channels:
            raise DataError(f"{where}: has images of {self.in_channels} channels; the network takes {channels}")
        return copy(self)

    def to_learn_from(self, seed: int) -> RandomPatches:
        """Random patches; an epoch sees about as many samples as the images have, or more if that is little."""
        return RandomPatches(self.items, self._rows, self.space, self._drawn, seed)

    @property
    def _drawn(self) -> int:
        """The patches of an image in an epoch."""
        sizes = sorted(math.prod(size) for size in self.sizes)
        count = round(sizes[len(sizes) // 2] / math.prod(self.space))
        return max(1, min(count, MOST_DRAWN), -(-LEAST_DRAWN // len(self)))

    @property
    def samples(self) -> int:
        return sum(math.prod(size) for size in self.sizes)

    @property
    def samples_drawn(self) -> int:
        """The samples of the patches that an epoch of training sees."""
        return len(self) * self._drawn * math.prod(self.space)

    def to_pick_by(self) -> Wholes:
        """Every image whole, with its mask as it is stored."""
        return Wholes(self.items, self._rows)


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

    def __init__(self, items: MaskStore, rows: Array) -> None:
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
