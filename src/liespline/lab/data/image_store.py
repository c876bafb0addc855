"""All images of a listing decoded into one shape and dtype, with one report of all that is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .arrays import Array
from .files import DataError, collected
from .listing import Listing
from .pictures import in_16_bits, read_picture, scaled, strict_pillow
from .store import Item, Store, file_key, stored

_BLOCK = 64
"""Images that are decoded together."""


class Kind(NamedTuple):
    """What all images of a set must be alike in."""

    space: tuple[int, int]
    channels: int
    dtype: str

    @property
    def alike(self) -> tuple[int, str]:
        """Only grey goes with RGB, and 8 with 16 bits."""
        return 3 if self.channels == 1 else self.channels, np.dtype(self.dtype).kind

    def __str__(self) -> str:
        return f"{self.channels} channel{'s' * (self.channels > 1)} of {self.dtype}"


def decoded(folder: Path, found: Listing, size: int | None, problems: Sequence[str]) -> Store:
    """The images of a listing, (H, W, C) each; DataError with `problems` and each file that does not fit."""
    keys = [f"{name.rpartition('/')[0]}/{file_key(file)}" for name, file in zip(found.names, found.files, strict=True)]
    return stored(folder, "\n".join([*keys, str(size)]), lambda whole: _items(found.files, size), problems)


def _items(files: Sequence[Path], size: int | None) -> Iterator[tuple[int, Item]]:
    """Each image as its file has it; then those again that other files make more of: colours, or 16 bits."""
    kinds: dict[Path, Kind] = {}
    problems: list[str] = []
    with strict_pillow(), ThreadPoolExecutor() as pool:
        for start in range(0, len(files), _BLOCK):
            block = files[start : start + _BLOCK]
            for row, reading in enumerate([pool.submit(_item, file, size) for file in block], start):
                with collected(problems):
                    item = reading.result()
                    kinds[files[row]] = _kind(item.arrays["image"])
                    yield row, item
        problems += _unlike(kinds)
        if problems or not kinds:
            raise DataError(problems)
        channels = max(kind.channels for kind in kinds.values())
        dtype = np.result_type(*(kind.dtype for kind in kinds.values()))
        for row, file in enumerate(files):
            if kinds[file][1:] != (channels, dtype.name):
                yield row, _item(file, size, channels, dtype == np.uint16)


def _item(file: Path, size: int | None, channels: int = 1, deep: bool = False) -> Item:
    """An image, with so many channels at least, and in 16 bits if `deep`."""
    array, transparent = read_picture(file)
    grey = array.ndim == 2
    if deep:
        array = in_16_bits(array)
    if channels > 1 and grey:
        array = np.repeat(array[..., None], channels, axis=-1)
    if size is not None:
        array = scaled(array, (size, size))
    return Item.of(array if array.ndim == 3 else array[..., None], True, transparent=transparent, grey=grey)


def _kind(array: Array) -> Kind:
    return Kind((array.shape[0], array.shape[1]), array.shape[2], array.dtype.name)


def _unlike(kinds: Mapping[Path, Kind]) -> list[str]:
    """Which files have another size, other channels or other numbers than most."""
    if not kinds:
        return []
    usual, count = Counter(kind.space for kind in kinds.values()).most_common(1)[0]
    problems = [
        f"{file}: is {kind.space[1]}×{kind.space[0]} where {count} images are {usual[1]}×{usual[0]}; "
        "resize it, or choose a common size with --size"
        for file, kind in kinds.items()
        if kind.space != usual
    ]
    most, count = Counter(kind.alike for kind in kinds.values()).most_common(1)[0]
    words = next(str(kind) for kind in kinds.values() if kind.alike == most)
    return problems + [
        f"{file}: has {kind} where {count} images have {words}; save all alike"
        for file, kind in kinds.items()
        if kind.alike != most
    ]
