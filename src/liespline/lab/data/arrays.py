"""NumPy's arrays and their files, in which pickled objects are never read."""

import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .files import DataError, decoding, existing

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
    with decoding(path, "cannot be read as a NumPy array", "save it again as plain numbers"):
        return np.lib.format.open_memmap(path, "r")


@contextmanager
def opened_npz(path: Path) -> Iterator[Mapping[str, Array]]:
    """The arrays of an `.npz` file by name, each of which is read when it is asked for."""
    if not zipfile.is_zipfile(existing(path, "arrays in an .npz file")):
        raise DataError(f"{path}: is no .npz file, or only the beginning of one; make or fetch it again")
    failed = decoding(path, "cannot be read as .npz", "make or fetch it again")
    with failed, np.load(path, allow_pickle=False) as arrays:
        yield arrays
