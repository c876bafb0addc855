"""Volumes of many sizes in a box of one size, each in its middle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .ragged import Ragged
from .rows import Array


def centred(values: Array, space: Sequence[int]) -> Array:
    """The middle of `values` (C, *own) in the middle of (C, *space): cut, or with each channel's lowest value around.

    Around, not zero: zero is air in one scan and tissue in another.
    """
    out = np.empty((len(values), *space), values.dtype)
    out[...] = values.min(tuple(range(1, values.ndim)), keepdims=True)
    inside, kept = [], []
    for own, wanted in zip(values.shape[1:], space, strict=True):
        count = min(own, wanted)
        inside.append(slice((wanted - count) // 2, (wanted - count) // 2 + count))
        kept.append(slice((own - count) // 2, (own - count) // 2 + count))
    out[(slice(None), *inside)] = values[(slice(None), *kept)]
    return out


class Centred:
    """Volumes of a file, each in the middle of a box; indexed by rows as an array (N, *space, C) is."""

    def __init__(self, items: Ragged, space: Sequence[int]) -> None:
        self.items, self.space = items, tuple(space)
        self.shape = (len(items), *self.space, items.shapes[0][0])

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, rows: Array) -> Array:
        """Read these rows."""
        read = [centred(self.items.image(int(row)), self.space) for row in rows]
        return np.moveaxis(np.stack(read), 1, -1)
