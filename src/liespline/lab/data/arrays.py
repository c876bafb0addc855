"""NumPy's arrays, and what their files say of themselves."""

from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .files import DataError, check_declared_size

Array = NDArray[Any]


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
