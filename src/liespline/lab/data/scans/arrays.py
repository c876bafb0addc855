"""Volumes in NumPy's files: one array in a `.npy`, or in an `.npz` with its spacing beside it."""

from pathlib import Path

import numpy as np

from ..arrays import Array, channels_first, mapped_npy, opened_npz
from ..files import DataError
from .scan import Scan

SUFFIXES = (".npy", ".npz")


def read_array_file(path: Path) -> Scan:
    """A volume (C, D, H, W) from an array (D, H, W), or (D, H, W, C) with at most 4 channels.

    An `.npz` holds the array alone or under the name `volume`, and may hold `spacing`, three numbers in millimetres
    along D, H and W; a bare array has cubic voxels.
    """
    values, spacing = (np.array(mapped_npy(path)), np.ones(3)) if path.suffix.lower() == ".npy" else _npz(path)
    if values.dtype.kind not in "iuf":
        raise DataError(f"{path}: holds {values.dtype}; expected whole numbers or floats")
    if spacing.shape != (3,) or not (np.isfinite(spacing) & (spacing > 0)).all():
        raise DataError(f"{path}: spacing is {spacing.tolist()}; expected three positive numbers in millimetres")
    return Scan(channels_first(path, values), tuple(float(value) for value in spacing))


def _npz(path: Path) -> tuple[Array, Array]:
    with opened_npz(path) as arrays:
        names = [name for name in arrays if name != "spacing"]
        if "volume" not in names and len(names) != 1:
            raise DataError(f"{path}: holds the arrays {sorted(names)}; name the volume 'volume', or leave only one")
        spacing = np.asarray(arrays["spacing"] if "spacing" in arrays else np.ones(3), float)
        return arrays["volume" if "volume" in names else names[0]], spacing
