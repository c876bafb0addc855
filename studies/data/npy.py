"""Rows of files that are read where they lie, and `.npy` files written block by block."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liespline.lab.data.arrays import Array, mapped_npy
from liespline.lab.data.files import DataError, replacing
from liespline.lab.data.store import Store


def write_npy(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[Array]) -> None:
    """Write `blocks`, which together have `shape`, as one `.npy` file, whole or not at all."""
    needed, free = int(np.prod(shape)) * dtype.itemsize, shutil.disk_usage(path.parent).free
    if needed > free:
        raise DataError(
            f"{path.parent}: needs {needed:,} free bytes and has {free:,}; free some or choose another folder"
        )
    with replacing(path) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(stream, header)
        written = 0
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype).tobytes())
            written += len(block)
        if written != shape[0]:
            raise DataError(f"{path}: {written} of {shape[0]} rows were written; nothing was kept")


def mapped(path: Path, offsets: NDArray[np.int64], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Store:
    """Row i of a file: the `shape`d array of `dtype` at byte `offsets[i]`."""
    ends, size = offsets + int(np.prod(shape)) * dtype.itemsize, path.stat().st_size
    if (beyond := np.flatnonzero(ends > size)).size:
        what = f"ends at byte {ends.max():,} of {size:,}; the file is truncated: fetch it again"
        raise DataError(f"{path}, row {beyond[0]}: {what}")
    count = len(offsets)
    index: dict[str, Array] = {"image starts": offsets, "image dtypes": np.broadcast_to(np.array(dtype.str), count)}
    return Store(path, index | {"image shapes": np.broadcast_to(np.array(shape, np.int64), (count, len(shape)))})


def npy_rows(path: Path) -> Store:
    """The first axis of a `.npy` file as rows."""
    rows = mapped_npy(path)
    if not rows.flags.c_contiguous:
        raise DataError(f"{path}: is in Fortran order; save it with numpy.ascontiguousarray")
    return mapped(path, rows.offset + rows.strides[0] * np.arange(len(rows)), rows.shape[1:], rows.dtype)
