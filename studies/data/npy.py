"""A `.npy` file written block by block, whole or not at all."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from liespline.lab.data.files import DataError, replacing
from liespline.lab.data.rows import Array


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
