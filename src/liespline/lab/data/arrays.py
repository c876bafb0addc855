"""NumPy's arrays and their files, in which pickled objects are never read."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .files import DataError, existing

Array = NDArray[Any]
MOST_CHANNELS = 4
"""A last axis of at most so many is one of channels, a longer one of space."""


def channels_first(where: object, values: Array) -> Array:
    """A volume (C, D, H, W) of an array (D, H, W) or (D, H, W, C)."""
    if values.ndim not in (3, 4) or (values.ndim == 4) != (values.shape[-1] <= MOST_CHANNELS) or not values.size:
        expected = f"(D, H, W) or (D, H, W, channels ≤ {MOST_CHANNELS})"
        raise DataError(f"{where}: has shape {values.shape}; expected {expected}")
    return values[None] if values.ndim == 3 else np.moveaxis(values, -1, 0)


def mapped_npy(path: Path) -> np.memmap[Any, Any]:
    """The array of a `.npy` file, mapped into memory: so a file that is shorter than it says is noticed at once."""
    existing(path, "an array in a .npy file")
    try:
        return np.lib.format.open_memmap(path, "r")
    except Exception as error:  # NumPy parses the header as Python text, which fails in many ways
        raise DataError(f"{path}: cannot be read as a NumPy array ({error}); save it again as plain numbers") from error


@contextmanager
def opened_npz(path: Path) -> Iterator[Mapping[str, Array]]:
    """The arrays of an `.npz` file by name, each of which is read when it is asked for."""
    if not zipfile.is_zipfile(existing(path, "arrays in an .npz file")):
        raise DataError(f"{path}: is no .npz file, or only the beginning of one; make or fetch it again")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            yield arrays
    except DataError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy each raise their own on damaged files
        raise DataError(f"{path}: cannot be read as .npz ({error}); make or fetch it again") from error
