"""Volumes in NumPy's files: one array in a `.npy`, or in an `.npz` with its spacing beside it."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array, npy_header
from ..files import DataError, check_declared_size, existing
from .scan import Scan

SUFFIXES = (".npy", ".npz")
MOST_CHANNELS = 4


def read_array_file(path: Path) -> Scan:
    """A volume (C, D, H, W) from an array (D, H, W), or (D, H, W, C) with at most 4 channels.

    An `.npz` holds the array alone or under the name `volume`, and may hold `spacing`, three numbers in millimetres
    along D, H and W; a bare array has cubic voxels.
    """
    existing(path, "a NumPy file")
    if path.suffix == ".npy":
        values, spacing = read_npy(path), np.ones(3)
    else:
        values, spacing = _npz(path)
    if values.ndim not in (3, 4) or (values.ndim == 4) != (values.shape[-1] <= MOST_CHANNELS):
        raise DataError(
            f"{path}: has shape {values.shape}; expected (D, H, W) or (D, H, W, channels ≤ {MOST_CHANNELS})"
        )
    if values.dtype.kind not in "iuf":
        raise DataError(f"{path}: holds {values.dtype}; expected whole numbers or floats")
    if spacing.shape != (3,) or not (np.isfinite(spacing) & (spacing > 0)).all():
        raise DataError(f"{path}: spacing is {spacing.tolist()}; expected three positive numbers in millimetres")
    channels = values[None] if values.ndim == 3 else np.moveaxis(values, -1, 0)
    return Scan(channels, tuple(float(value) for value in spacing))


def read_npy(path: Path, mapped: bool = False) -> Array:
    """The array of a `.npy` file, in memory or `mapped` into it."""
    with open(path, "rb") as stream:
        npy_header(path, stream)  # refuses pickled objects and sizes that the file cannot hold
    try:
        return np.asarray(np.load(path, "r" if mapped else None, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: ends too early ({error}); make or fetch it again") from error


def _npz(path: Path) -> tuple[Array, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                check_declared_size(path, info.file_size, info.filename)
        with np.load(path, allow_pickle=False) as arrays:
            held: dict[str, Any] = {name: arrays[name] for name in arrays.files}
    except DataError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy each raise their own on damaged files
        raise DataError(f"{path}: is no readable .npz file ({error}); make or fetch it again") from error
    spacing = np.asarray(held.pop("spacing", np.ones(3)), float)
    if "volume" not in held and len(held) != 1:
        raise DataError(f"{path}: holds the arrays {sorted(held)}; name the volume 'volume', or leave only one")
    return np.asarray(held.get("volume", next(iter(held.values())))), spacing
