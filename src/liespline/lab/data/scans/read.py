"""One function from any volume file to its voxels: NIfTI, DICOM, and NumPy's own files."""

from pathlib import Path

import numpy as np

from ..arrays import Array, channels_first, mapped_npy, opened_npz
from ..files import DataError
from . import dicom, nifti
from .reading import Scan

SUFFIXES = (".npy", ".npz")
SCAN_FORMATS = "NIfTI, .npy, .npz or folders of DICOM slices"


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


def stem(path: Path) -> str:
    """The file's name without its suffix: `brain` for `brain.nii.gz`; a folder of slices has its own name."""
    double = path.name.lower().endswith(".nii.gz")
    return path.name[: -len(".nii.gz")] if double else path.stem


def is_scan(path: Path) -> bool:
    """Whether the path has the name of a volume, or is a folder with DICOM slices."""
    if path.is_dir():
        return bool(dicom.slices(path))
    return path.name.lower().endswith((*nifti.SUFFIXES, *SUFFIXES))


def read_scan(path: Path) -> Scan:
    """The volume in a file or a folder of slices; DataError for anything else and for voxels that are no numbers."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: does not exist")
    if path.is_dir():
        scan = dicom.read_dicom(path)
    elif path.name.lower().endswith(nifti.SUFFIXES):
        scan = nifti.read_nifti(path)
    elif path.name.lower().endswith(SUFFIXES):
        scan = read_array_file(path)
    else:
        raise DataError(f"{path}: is no volume; expected .nii, .nii.gz, .npy, .npz or a folder of DICOM slices")
    if scan.values.dtype.kind == "f" and (count := int((~np.isfinite(scan.values)).sum())):
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(scan.values))[0][1:])
        raise DataError(f"{path}: {count:,} voxels are NaN or infinite, {place} first; replace them by a number")
    return scan
