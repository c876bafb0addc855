"""Images with masks as they are kept once they have been decoded."""

from collections.abc import Sequence

import numpy as np
import torch

from .arrays import Array
from .samples import as_float
from .store import Store


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
