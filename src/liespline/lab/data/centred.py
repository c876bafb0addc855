"""Volumes in a box of one size, each in its middle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import Array
from .store import Seen, Store


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
    """Volumes of many sizes or of one in the middle of a box; read as an array (N, *space, C) is."""

    def __init__(self, volumes: Store, space: Sequence[int]) -> None:
        self.volumes, self.space = volumes, tuple(space)
        self.shape = (len(volumes), *self.space, volumes.shapes[0][0])

    def __len__(self) -> int:
        return len(self.volumes)

    @property
    def seen(self) -> Seen | None:
        """What was found when the volumes were decoded, if all of them are as large as the box."""
        return self.volumes.seen if {shape[1:] for shape in self.volumes.shapes} == {self.space} else None

    @property
    def spacings(self) -> list[tuple[float, ...]]:
        """The size of each volume's own voxels."""
        return self.volumes.spacings

    def read(self, rows: Sequence[int] | Array, window: Sequence[slice] = ()) -> Array:
        """These volumes, each cut to a window: (B, *space, C)."""
        read = [centred(self.volumes.array(int(row)), self.space)[(slice(None), *window)] for row in rows]
        return np.moveaxis(np.stack(read), 1, -1)


def boxed(volumes: Store, size: int | tuple[int, ...] | None) -> tuple[Centred, list[str]]:
    """Volumes in one box, of `size` (one number for a cube) or as large as the largest, and what that does to them."""
    sizes = [shape[1:] for shape in volumes.shapes]
    space = tuple(max(sides) for sides in zip(*sizes, strict=True))
    if size is not None:
        space = size if isinstance(size, tuple) else (size,) * 3
    notes, box = [], "×".join(map(str, space))
    if smaller := sum(any(own < wanted for own, wanted in zip(one, space, strict=True)) for one in sizes):
        notes.append(f"{smaller} of {len(sizes)} volumes are smaller than {box}: around them is their lowest value")
    if larger := sum(any(own > wanted for own, wanted in zip(one, space, strict=True)) for one in sizes):
        notes.append(f"{larger} of {len(sizes)} volumes are larger than {box}: only their middle is seen")
    return Centred(volumes, space), notes
