"""Images of many sizes with their masks, decoded once into one file that is read window by window."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .files import lock, replaced, replacing
from .rows import Array, cache_folder, digest, fingerprint

PLACES = 256  # remembered voxels per image and class, to draw patches around
IGNORE = 255  # the class number of voxels that are neither learned from nor scored
DTYPES = ("uint8", "uint16", "float32")
FORMAT = 3  # of the file: what another version decoded is decoded anew


@dataclass(frozen=True)
class Item:
    """An image (C, *space) and its mask (*space) of class numbers, or one of no voxels where there is none.

    Where both were resampled, `own` is the mask as it is stored, on the image's own grid. `spacing` is the size of the
    image's own voxels in millimetres.
    """

    image: Array
    mask: Array
    own: Array | None = None
    spacing: tuple[float, ...] = ()


class Ragged:
    """Items of a file; nothing is read until a window of one is asked for, and loader processes share the pages."""

    def __init__(self, path: Path, index: dict[str, Array]) -> None:
        self.path, self.index = path, index
        self.shapes = [tuple(int(n) for n in shape) for shape in index["shapes"]]  # (C, *space)
        self.spacings = [tuple(float(n) for n in spacing) for spacing in index["spacings"]]  # of the own voxels, in mm
        self.places, self.counts = index["places"], index["counts"]
        """Flat positions (N, K, PLACES) of voxels of each class, −1 for none, and how many there are (N, K)."""
        self.marks = [str(mark) for mark in index["marks"]]
        """Fingerprints of the images: equal ones are exact copies."""
        self._bytes: Array | None = None

    def __len__(self) -> int:
        return len(self.shapes)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bytes": None}

    def image(self, row: int, window: Sequence[slice] = ()) -> Array:
        """An image as float32, integers as shares of the largest: (C, *window)."""
        kind = np.dtype(DTYPES[int(self.index["dtypes"][row])])
        values = self._view(int(self.index["starts"][row]), self.shapes[row], kind)[(slice(None), *window)]
        floats: Array = values.astype(np.float32)
        return floats if kind.kind == "f" else floats / np.float32(np.iinfo(kind).max)

    def mask(self, row: int, window: Sequence[slice] = ()) -> Array:
        """Its mask as uint8: (*window)."""
        return np.array(self._view(self._mask_at(row), self.shapes[row][1:], np.dtype(np.uint8))[tuple(window)])

    def own_mask(self, row: int) -> Array:
        """Its mask as it is stored, on the image's own grid, as uint8: (*own)."""
        own = tuple(int(n) for n in self.index["owns"][row])
        if not any(own):
            return self.mask(row)
        start = self._mask_at(row) + int(np.prod(self.shapes[row][1:]))
        return np.array(self._view(start, own, np.dtype(np.uint8)))

    def _mask_at(self, row: int) -> int:
        size = int(np.prod(self.shapes[row])) * np.dtype(DTYPES[int(self.index["dtypes"][row])]).itemsize
        return int(self.index["starts"][row]) + size

    def _view(self, start: int, shape: tuple[int, ...], kind: np.dtype[Any]) -> Array:
        if self._bytes is None:
            self._bytes = np.memmap(self.path, mode="r")
        return np.ndarray(shape, kind, self._bytes[start : start + int(np.prod(shape)) * kind.itemsize])


Content = tuple[dict[str, Array], Iterator[Item]]  # what to keep about all items, `classes` among it, and the items


def cached_items(source: Path, key: str, build: Callable[[], Content]) -> Ragged:
    """What `build()` reads from `source`, kept beside it until `key`, whatever the content depends on, changes."""
    folder = cache_folder(source)
    family = f"{source.name}.{digest(str(source.absolute()))}"
    target = folder / f"{family}.{digest(f'{FORMAT} {key}')}.pairs"
    index = target.with_suffix(".npz")
    if not index.exists():
        with lock(folder / f"{family}.lock", wait=True):
            if not index.exists():
                _write(target, index, *build())
            for other in folder.glob(f"{family.replace('[', '[[]')}.*"):
                if other.suffix in (".pairs", ".npz") and other.stem != target.stem:
                    other.unlink(missing_ok=True)
    with np.load(index, allow_pickle=False) as arrays:
        return Ragged(target, {name: arrays[name] for name in arrays.files})


def _write(target: Path, index: Path, about: dict[str, Array], items: Iterator[Item]) -> None:
    shapes, starts, dtypes, places, counts, owns, spacings, marks = [], [], [], [], [], [], [], []
    with replacing(target) as stream:
        for item in items:
            starts.append(stream.tell())
            dtypes.append(DTYPES.index(item.image.dtype.name))
            shapes.append(item.image.shape)
            marks.append(fingerprint(item.image))
            stream.write(np.ascontiguousarray(item.image).tobytes())
            stream.write(np.ascontiguousarray(item.mask, np.uint8).tobytes())
            if item.own is not None:
                stream.write(np.ascontiguousarray(item.own, np.uint8).tobytes())
            owns.append((0,) * item.mask.ndim if item.own is None else item.own.shape)
            spacings.append(item.spacing)
            stream.write(bytes(-stream.tell() % 8))  # the next item begins where its dtype may
            some, count = _remember(item.mask, len(about["classes"]), len(shapes))
            places.append(some)
            counts.append(count)
    with replaced(index) as part, open(part, "wb") as file:
        np.savez(
            file, allow_pickle=False, shapes=shapes, starts=starts, dtypes=dtypes, places=places, counts=counts,
            owns=owns, spacings=spacings, marks=marks, **about,
        )  # fmt: skip


def _remember(mask: Array, classes: int, row: int) -> tuple[Array, Array]:
    places = np.full((classes, PLACES), -1, np.int64)
    flat = mask.ravel()
    for number in range(classes):
        found = np.flatnonzero(flat == number)
        chosen = np.random.default_rng([row, number]).permutation(len(found))[:PLACES]
        places[number, : len(chosen)] = found[chosen]
    return places, np.bincount(flat[flat < classes], minlength=classes)
