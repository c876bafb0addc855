"""Images with masks as they are kept, and patches of them, drawn for training so that rare classes are seen."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .arrays import Array
from .samples import IGNORE, as_float
from .store import Store

FOCUSED = 0.5  # of the patches are put around a class


class MaskStore(Store):
    """Images (C, *space) with masks (*space) of class numbers; where both were resampled, also the mask as it was."""

    @property
    def counts(self) -> Array:
        """How many voxels of each class there are: (N, K)."""
        return self.index["counts"]

    @property
    def places(self) -> Array:
        """Flat positions of some voxels of each class, −1 for none: (N, K, PLACES)."""
        return self.index["places"]

    def image(self, row: int, window: Sequence[slice] = ()) -> Array:
        """An image as float32, integers as shares of the largest: (C, *window)."""
        return as_float(torch.tensor(self.array(row, (slice(None), *window)))).numpy()

    def mask(self, row: int, window: Sequence[slice] = ()) -> Array:
        """Its mask as uint8: (*window)."""
        return np.array(self.array(row, window, "mask"))

    def own_mask(self, row: int) -> Array:
        """Its mask as it is stored, on the image's own grid, as uint8: (*own)."""
        own = self.array(row, (), "own")
        return np.array(own) if own.size else self.mask(row)


def cut(items: MaskStore, row: int, origin: Sequence[int], patch: Sequence[int]) -> tuple[Array, Array]:
    """The patch of an item at `origin`; beyond the image, its edge goes on and the mask is to be ignored."""
    space = items.shapes[row][1:]
    window = [slice(max(0, o), min(n, o + p)) for o, p, n in zip(origin, patch, space, strict=True)]
    beyond = [(w.start - o, o + p - w.stop) for w, o, p in zip(window, origin, patch, strict=True)]
    image, mask = items.image(row, window), items.mask(row, window)
    if any(map(any, beyond)):
        image = np.pad(image, ((0, 0), *beyond), mode="edge")
        mask = np.pad(mask, beyond, constant_values=IGNORE)
    return image, mask


class RandomPatches(Dataset[tuple[Tensor, Tensor]]):
    """Random patches, `per_image` for each image in an epoch.

    Half of them lie anywhere in the image whose turn it is. The other half are put around a voxel of a class: the
    class is drawn evenly from all but the first, then one of the images that have it, so that a class of a few voxels
    in one image is seen as often as the others. Patch number i of epoch e has index e·len + i, and depends on the seed
    and this index alone: what a resumed run draws is what an uninterrupted one would have drawn.
    """

    def __init__(self, items: MaskStore, rows: Array, patch: Sequence[int], per_image: int, seed: int) -> None:
        self.items, self.rows, self.patch, self.per_image, self.seed = items, rows, tuple(patch), per_image, seed
        counts = items.counts[rows]
        self.holders = [rows[counts[:, number] > 0] for number in range(counts.shape[1])]
        self.rare = [number for number in range(1, counts.shape[1]) if len(self.holders[number])]

    def __len__(self) -> int:
        return len(self.rows) * self.per_image

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        image, mask = cut(self.items, *self._place(index), self.patch)
        return torch.from_numpy(image), torch.from_numpy(mask).long()

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """A batch: patches (B, C, *patch) and class numbers (B, *patch)."""
        images, masks = zip(*(self[index] for index in indices), strict=True)
        return torch.stack(images), torch.stack(masks)

    def _place(self, index: int) -> tuple[int, list[int]]:
        draw = np.random.default_rng([self.seed, index])
        row = int(self.rows[index % len(self.rows)])
        if self.rare and draw.random() < FOCUSED:
            number = int(draw.choice(self.rare))
            row = int(draw.choice(self.holders[number]))
            known = self.items.places[row, number]
            place = np.unravel_index(int(draw.choice(known[known >= 0])), self.items.shapes[row][1:])
            # Anywhere in the patch, not only in its middle: the network must not learn that the middle is special.
            wanted = [int(at) - int(draw.integers(0, side)) for at, side in zip(place, self.patch, strict=True)]
        else:
            space = self.items.shapes[row][1:]
            wanted = [int(draw.integers(0, max(1, n - p + 1))) for n, p in zip(space, self.patch, strict=True)]
        return row, self._inside(row, wanted)

    def _inside(self, row: int, wanted: Sequence[int]) -> list[int]:
        """The nearest origin whose patch lies inside; images smaller than the patch are put in its middle."""
        pairs = zip(wanted, self.items.shapes[row][1:], self.patch, strict=True)
        return [min(max(0, o), n - p) if n >= p else -((p - n) // 2) for o, n, p in pairs]
