"""Decoded items of a data set, kept in one file beside it: each file is opened, decoded and hashed once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from .arrays import Array
from .files import DataError, collected, lock, replacing
from .samples import STATISTICS, as_float, statistics

FORMAT = 4
"""Of the files: what another version decoded is decoded anew."""
SUFFIXES = (".items", ".npz")


@dataclass(frozen=True)
class Seen:
    """What is known of images once they have been read, one entry each."""

    marks: list[str]
    """Fingerprints of the samples: equal ones are exact copies."""
    statistics: Tensor
    """Minimum, mean and maximum of each channel, as a network sees them: (N, 3, C)."""
    dtype: str

    @staticmethod
    def of(images: Tensor) -> Seen:
        """Of a batch (B, C, *space)."""
        marks = [fingerprint(image.numpy()) for image in images]
        return Seen(marks, statistics(as_float(images)), str(images.dtype).removeprefix("torch."))

    @staticmethod
    def joined(parts: Sequence[Seen], channels: int) -> Seen:
        """Of all parts, one after the other."""
        marks = [mark for part in parts for mark in part.marks]
        found = [torch.zeros(0, len(STATISTICS), channels), *(part.statistics for part in parts)]
        return Seen(marks, torch.cat(found), parts[-1].dtype if parts else "")

    def __getitem__(self, rows: Array) -> Seen:
        return Seen([self.marks[int(row)] for row in rows], self.statistics[torch.as_tensor(rows)], self.dtype)


@dataclass(frozen=True)
class Item:
    """The arrays of an item by name, `image` first, and what else is known of it."""

    arrays: Mapping[str, Array]
    about: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(image: Array, channels_last: bool = False, **about: Any) -> Item:
        """An image (C, *space), or (*space) or (*space, C) with `channels_last`, which is looked at here and now."""
        values = image if not channels_last else np.moveaxis(image, -1, 0)
        seen = Seen.of(torch.tensor(np.ascontiguousarray(values))[None])
        known = {"mark": seen.marks[0], "statistics": seen.statistics[0].numpy(), "dtype": seen.dtype}
        return Item({"image": image}, known | about)


Build = Callable[[dict[str, Array]], Iterable[tuple[int, Item]]]
"""Gives the items with their rows, one that comes again replaces the first, and notes what is known of all of them."""


class Store:
    """Items of a file, each of its own shape and dtype; nothing is read until it is asked for.

    The mapping is opened on first use and never pickled, so that loader processes share the pages.
    """

    def __init__(self, path: Path, index: Mapping[str, Array]) -> None:
        self.path, self.index = path, index
        self._bytes: Array | None = None

    def __len__(self) -> int:
        return len(self.index["image starts"])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bytes": None}

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(shape) for shape in self.index["image shapes"].tolist()]

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, …) of images that are all alike."""
        return (len(self), *self.index["image shapes"][0].tolist())

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of images that are all alike."""
        return np.dtype(str(self.index["image dtypes"][0]))

    @cached_property
    def spacings(self) -> list[tuple[float, ...]]:
        """The size of each image's voxels in millimetres, as it is stored in its file; none where files state none."""
        return [tuple(spacing) for spacing in self.index["spacing"].tolist()] if "spacing" in self.index else []

    @property
    def seen(self) -> Seen | None:
        """What was found when the images were decoded; None for files that are read as they are."""
        index = self.index
        if "mark" not in index:
            return None
        return Seen(index["mark"].tolist(), torch.from_numpy(index["statistics"]), str(index["dtype"][0]))

    def array(self, row: int, window: Sequence[slice] = (), name: str = "image") -> Array:
        """One of an item's arrays, a view that must not be written to, cut to a window."""
        index, start = self.index, int(self.index[f"{name} starts"][row])
        kind = np.dtype(str(index[f"{name} dtypes"][row]))
        view: Array = np.ndarray(tuple(index[f"{name} shapes"][row]), kind, self._mapped(), start)
        return view[tuple(window)]

    def read(self, rows: Sequence[int] | Array, window: Sequence[slice] = ()) -> Array:
        """Images that are all alike, in the order asked for, freshly allocated: (B, …)."""
        return np.stack([self.array(row, window) for row in rows])

    def _mapped(self) -> Array:
        if self._bytes is None:
            self._bytes = np.memmap(self.path, mode="r").view(np.ndarray)
        return self._bytes


def stored(source: Path, key: str, build: Build, problems: Sequence[str] = ()) -> Store:
    """What `build()` reads from `source`, decoded once and kept until `key`, whatever it depends on, changes.

    The files' names hold a digest of `key`, so that a changed source is decoded anew; its older files go. Where there
    are `problems` already, a DataError has these and those of reading.
    """
    found = list(problems)
    with collected(found):
        store = _stored(source, key, build)
    if found:
        raise DataError(found)
    return store


def _stored(source: Path, key: str, build: Build) -> Store:
    folder = cache_folder(source)
    family = f"{source.name}.{digest(str(source.absolute()))}"
    target = folder / f"{family}.{digest(f'{FORMAT} {key}')}.items"
    index = target.with_suffix(".npz")
    if (kept := _kept(target, index)) is not None:
        return kept
    with lock(folder / f"{family}.lock", wait=True):
        if _kept(target, index) is None:
            _write(target, index, build)
        for other in folder.iterdir():
            if other.name.startswith(f"{family}.") and other.suffix in SUFFIXES and other.stem != target.stem:
                other.unlink(missing_ok=True)
    return _stored(source, key, build)


def _kept(target: Path, index: Path) -> Store | None:
    """What was decoded before, if all of it is there."""
    if not (index.exists() and target.exists()):
        return None
    with np.load(index, allow_pickle=False) as arrays:
        store = Store(target, {name: arrays[name] for name in arrays.files})
    return store if target.stat().st_size == int(store.index["bytes"]) else None


def _write(target: Path, index: Path, build: Build) -> None:
    entries: dict[int, dict[str, Any]] = {}
    whole: dict[str, Array] = {}
    with replacing(target) as stream:
        for row, item in build(whole):
            entries[row] = dict(item.about)
            for name, array in item.arrays.items():
                entries[row] |= {f"{name} starts": stream.tell(), f"{name} shapes": array.shape}
                entries[row] |= {f"{name} dtypes": array.dtype.str}
                stream.write(np.ascontiguousarray(array).tobytes())
                stream.write(bytes(-stream.tell() % 8))  # the next array begins where its dtype may
        whole["bytes"] = np.array(stream.tell())
    names = entries[0] if entries else ()
    columns: dict[str, Any] = {name: np.array([entries[row][name] for row in range(len(entries))]) for name in names}
    with replacing(index) as file:
        np.savez(file, allow_pickle=False, **columns, **whole)


def aside(file: IO[bytes], array: Array) -> Array:
    """The same array, put aside in a file: what it becomes may depend on others that are still to be read."""
    start = file.seek(0, os.SEEK_END)
    file.write(np.ascontiguousarray(array).tobytes())
    file.flush()
    return np.memmap(file, array.dtype, "r", start, array.shape)


def fingerprint(values: Array) -> str:
    """A short name for the samples of an image."""
    return hashlib.blake2b(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data, digest_size=6).hexdigest()


def cache_folder(source: Path) -> Path:
    """$LIESPLINE_CACHE; else `.liespline-cache` beside the source or, if read-only, the user's cache."""
    chosen = os.environ.get("LIESPLINE_CACHE")
    usual = [source.parent / ".liespline-cache", Path.home() / ".cache" / "liespline"]
    for folder in [Path(chosen)] if chosen else usual:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise DataError(
        f"{chosen or usual[0]}: cannot be written, and a decoded copy of {source} is needed; "
        "set LIESPLINE_CACHE to a folder you can write to"
    )


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def file_key(path: Path) -> str:
    """What changes whenever the content of the file, or of a file in the folder, is replaced."""
    if path.is_dir():
        return " ".join(file_key(entry) for entry in sorted(path.iterdir()))
    status = path.stat()
    return f"{path.name} {status.st_size} {status.st_mtime_ns}"
