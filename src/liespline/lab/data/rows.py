"""Equal-sized records of a file, memory-mapped, and what NumPy's files say of themselves."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .files import DataError, check_declared_size

Array = NDArray[Any]


class Rows:
    """Row i of a file: the `shape`d array of `dtype` at byte `offsets[i]`.

    Nothing is read until rows are asked for. The mapping is opened on first use and never pickled, so that
    each loader process opens its own and the pages are shared.
    """

    def __init__(self, path: Path, offsets: NDArray[np.int64], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path, self.offsets, self.shape, self.dtype = path, offsets, shape, dtype
        self._row_bytes = int(np.prod(shape)) * dtype.itemsize
        self._bytes: NDArray[np.uint8] | None = None
        size, end = path.stat().st_size, int(offsets.max(initial=0)) + self._row_bytes
        if len(offsets) and end > size:
            row = int(np.argmax(offsets + self._row_bytes > size))
            raise DataError(
                f"{path}, row {row}: ends at byte {end:,} of {size:,}; the file is truncated: fetch it again"
            )

    def __len__(self) -> int:
        return len(self.offsets)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bytes": None}

    def read(self, rows: Sequence[int] | Array, window: Sequence[slice] = ()) -> Array:
        """The rows in the order asked for, each cut to `window`, freshly allocated: (len(rows), *cut)."""
        if self._bytes is None:
            self._bytes = np.memmap(self.path, mode="r")
        cut = np.empty(self.shape, np.uint8)[tuple(window)].shape if window else self.shape
        out = np.empty((len(rows), *cut), self.dtype)
        for target, row in zip(out, rows, strict=True):
            start = self.offsets[row]
            record = self._bytes[start : start + self._row_bytes].view(self.dtype).reshape(self.shape)
            target[...] = record[tuple(window)]
        return out


def npy_header(path: Path, stream: IO[bytes], name: str = "") -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of a NumPy array in C order, from its first bytes; `name` is its name inside `path`."""
    what = f"{path}: {name or 'it'}"
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except Exception as error:  # NumPy parses the header as Python text, which fails in many ways
        raise DataError(f"{what} is no NumPy array ({error}); make or fetch it again") from error
    if dtype.hasobject:
        raise DataError(f"{what} holds pickled objects, which can run code; save it as plain numbers")
    if fortran and len(shape) > 1:
        raise DataError(f"{what} is in Fortran order; save it with numpy.ascontiguousarray")
    declared = int(np.prod([float(n) for n in shape])) * dtype.itemsize
    check_declared_size(path, declared, f"{name or 'an array'} of shape {shape}")
    return shape, dtype


def npy_rows(path: Path) -> Rows:
    """The first axis of a `.npy` file as rows."""
    with open(path, "rb") as stream:
        shape, dtype = npy_header(path, stream)
        start = stream.tell()
    if not shape:
        raise DataError(f"{path}: holds one number; expected rows along the first axis")
    row_bytes = int(np.prod(shape[1:])) * dtype.itemsize
    if start + shape[0] * row_bytes > path.stat().st_size:
        raise DataError(f"{path}: is shorter than its {shape[0]:,} rows; make or fetch it again")
    return Rows(path, start + row_bytes * np.arange(shape[0], dtype=np.int64), shape[1:], dtype)
