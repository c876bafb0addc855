"""Images with masks as a split of a task: whole for scoring, in patches for training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy

import torch
from torch import Tensor

from .files import DataError
from .pairs import Pairs
from .patches import Drawn, cut
from .split import Split
from .whole import Wholes

PATCH = {2: 96, 3: 32}
MOST_DRAWN = 16  # patches of one image in an epoch, if there are many images
LEAST_DRAWN = 128  # patches of all images in an epoch: few images have many voxels to learn from


class MaskSplit(Split):
    """Pairs of images (C, *space) and masks (*space), of any sizes; a batch of them is of their middle patches.

    `side` is the side of the voxels in millimetres, `patch` the side of the patches in samples.
    """

    def __init__(self, pairs: Pairs, patch: int | None, *, dealt: bool) -> None:
        self.pairs, self.dealt = pairs, dealt
        self.classes, self.notes, self.synthetic, self.kind = pairs.classes, pairs.notes, False, "masks"
        self.in_channels, self.side, self.values = pairs.in_channels, pairs.side, pairs.values
        self.voxels = pairs.voxels
        self.space = (patch or PATCH[pairs.space_dim],) * pairs.space_dim
        self.targets = torch.from_numpy(pairs.items.counts[pairs.rows])  # voxels of each class, image by image

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        row = int(self.pairs.rows[index])
        image, mask = self.pairs.items.image(row), self.pairs.items.mask(row)
        return torch.from_numpy(image), torch.from_numpy(mask).long()

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The middle patches of images (B, C, *patch) and of their masks (B, *patch)."""
        images, masks = [], []
        for row in self.pairs.rows[list(indices)]:
            origin = [(n - p) // 2 for n, p in zip(self.pairs.items.shapes[row][1:], self.space, strict=True)]
            image, mask = cut(self.pairs.items, int(row), origin, self.space)
            images.append(torch.from_numpy(image))
            masks.append(torch.from_numpy(mask).long())
        return torch.stack(images), torch.stack(masks)

    def blocks(self, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Every image and mask whole, one at a time: they have different sizes."""
        for index in range(len(self)):
            image, mask = self[index]
            yield image.unsqueeze(0), mask.unsqueeze(0)

    @property
    def names(self) -> list[str]:
        """The names that images and masks share."""
        return self.pairs.names

    @property
    def has_names(self) -> bool:
        """Images are files."""
        return True

    @property
    def spacings(self) -> list[tuple[float, ...]]:
        """Of each image's own pixels or voxels."""
        return [self.pairs.items.spacings[int(row)] for row in self.pairs.rows]

    def named(self, names: Sequence[str]) -> MaskSplit:
        """The pairs of these names, in this order; all must be there."""
        return MaskSplit(self.pairs.named(names), self.space[0], dealt=self.dealt)

    def among(self, classes: Sequence[str], where: str) -> MaskSplit:
        """The same pairs, if their masks mean what the network learned."""
        if self.classes != tuple(classes):
            known = f"the network knows {', '.join(classes)}"
            raise DataError(f"{where}: has classes {', '.join(self.classes)}; {known}: name them in classes.csv")
        return self

    def in_colours(self, channels: int, where: str) -> MaskSplit:
        """The same images, if they have so many channels."""
        if self.in_channels != channels:
            raise DataError(f"{where}: has images of {self.in_channels} channels; the network takes {channels}")
        return copy(self)

    def to_learn_from(self, seed: int) -> Drawn:
        """Random patches; an epoch sees about as many samples as the images have, or more if that is little."""
        return Drawn(self.pairs.items, self.pairs.rows, self.space, self._drawn, seed)

    @property
    def _drawn(self) -> int:
        """The patches of an image in an epoch."""
        sizes = sorted(math.prod(size) for size in self.pairs.sizes())
        count = round(sizes[len(sizes) // 2] / math.prod(self.space))
        return max(1, min(count, MOST_DRAWN), -(-LEAST_DRAWN // len(self)))

    @property
    def samples(self) -> int:
        """The samples of all images, whole."""
        return sum(math.prod(size) for size in self.pairs.sizes())

    @property
    def samples_drawn(self) -> int:
        """The samples of the patches that an epoch of training sees."""
        return len(self) * self._drawn * math.prod(self.space)

    def to_pick_by(self) -> Wholes:
        """Every image whole, with its mask as it is stored."""
        return Wholes(self.pairs.items, self.pairs.rows)
