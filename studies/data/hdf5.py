"""HDF5 data sets as memory-mapped rows, without trusting what the file says of itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from liespline.lab.data.arrays import Array
from liespline.lab.data.files import DataError, check_declared_size, existing
from liespline.lab.data.store import Item, Store, file_key, stored

from .npy import mapped

BLOCK = 1024


def hdf5_rows(path: Path, name: str, row_shape: tuple[int, ...], dtype: np.dtype[Any]) -> Store:
    """Data set `name` of `path`, which must be (N, *row_shape) of `dtype`, as rows.

    Stored plainly (contiguous, or in unfiltered chunks of whole rows) it is mapped where it lies. Compressed,
    it is decoded once into a cache file. Raises DataError with file and row for anything else.
    """
    existing(path, f"an HDF5 file with a data set {name!r}")
    try:
        with h5py.File(path, "r") as file:
            dataset = _plain_dataset(path, file, name)
            _check_layout(path, name, dataset, row_shape, dtype)
            offsets = _row_offsets(path, dataset)
            count = len(dataset)
    except DataError:
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise DataError(
            f"{path}: cannot be read as HDF5 ({error}); it is truncated or damaged: fetch it again"
        ) from error
    if offsets is not None:
        return mapped(path, offsets, row_shape, dtype)
    return stored(path, file_key(path), lambda whole: _items(path, name, count))


def _plain_dataset(path: Path, file: h5py.File, name: str) -> h5py.Dataset:
    if name not in file:
        raise DataError(f"{path}: has no data set {name!r} but {sorted(file)[:9]}; fetch the official file")
    # External links, external storage and virtual data sets make HDF5 open other files, wherever they point.
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise DataError(f"{path}: {name!r} is a link to another place; store the data in this file")
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise DataError(f"{path}: {name!r} is a group, not a data set; fetch the official file")
    if dataset.is_virtual or dataset.external:
        raise DataError(f"{path}: {name!r} keeps its data in another file; store the data in this file")
    return dataset


def _check_layout(
    path: Path, name: str, dataset: h5py.Dataset, row_shape: tuple[int, ...], dtype: np.dtype[Any]
) -> None:
    if dataset.ndim != 1 + len(row_shape) or dataset.shape[1:] != row_shape:
        expected = ", ".join(map(str, ("N", *row_shape)))
        raise DataError(f"{path}: {name!r} has shape {dataset.shape}; expected ({expected})")
    if dataset.dtype != dtype:
        raise DataError(f"{path}: {name!r} has dtype {dataset.dtype}; expected {dtype}")
    check_declared_size(path, dataset.size * dtype.itemsize, f"{len(dataset):,} rows of {name!r}")


def _row_offsets(path: Path, dataset: h5py.Dataset) -> NDArray[np.int64] | None:
    """Where each row begins in the file, or None if rows are compressed or cut into pieces."""
    count = len(dataset)
    row_bytes = int(np.prod(dataset.shape[1:])) * int(dataset.dtype.itemsize)
    if dataset.chunks is None:
        start = dataset.id.get_offset()
        if start is None and count:
            raise DataError(f"{path}: {dataset.name!r} was declared but never written; fetch the official file")
        if count * row_bytes > path.stat().st_size:
            raise DataError(f"{path}: is shorter than its {count:,} rows; it is truncated: fetch it again")
        return int(start or 0) + row_bytes * np.arange(count, dtype=np.int64)

    starts: dict[int, int] = {}  # first row of a chunk -> its byte
    filtered = dataset.id.get_create_plist().get_nfilters() > 0
    dataset.id.chunk_iter(lambda chunk: starts.setdefault(chunk.chunk_offset[0], chunk.byte_offset) and None)
    height = int(dataset.chunks[0])
    for row in range(0, count, height):
        if row not in starts:
            last = min(row + height, count) - 1
            raise DataError(f"{path}, rows {row} to {last}: were never written; the file is incomplete: fetch it again")
    if filtered or dataset.chunks[1:] != dataset.shape[1:]:
        return None
    firsts = np.array([starts[row] for row in range(0, count, height)], np.int64)
    within = row_bytes * np.arange(height, dtype=np.int64)
    return (firsts[:, None] + within).reshape(-1)[:count]


def _items(path: Path, name: str, count: int) -> Iterator[tuple[int, Item]]:
    for row, image in enumerate(image for block in _decoded(path, name, count) for image in block):
        yield row, Item.of(image, channels_last=True)


def _decoded(path: Path, name: str, count: int) -> Iterator[Array]:
    with h5py.File(path, "r") as file:
        for start in range(0, count, BLOCK):
            try:
                yield file[name][start : start + BLOCK]
            except (OSError, RuntimeError) as error:
                last = min(start + BLOCK, count) - 1
                raise DataError(
                    f"{path}, rows {start} to {last}: cannot be decoded ({error}); fetch it again"
                ) from error
