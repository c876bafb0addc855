"""One function from any volume file to its voxels."""

from pathlib import Path

import numpy as np

from ..files import DataError
from . import arrays, dicom, nifti
from .scan import Scan


def stem(path: Path) -> str:
    """The file's name without its suffix: `brain` for `brain.nii.gz`; a folder of slices has its own name."""
    name = path.name
    for suffix in (".nii.gz", path.suffix.lower()):
        if suffix and name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


SCAN_FORMATS = "NIfTI, .npy, .npz or folders of DICOM slices"


def is_scan(path: Path) -> bool:
    """Whether the path has the name of a volume, or is a folder with DICOM slices."""
    if path.is_dir():
        return bool(dicom.slices(path))
    return path.name.lower().endswith((*nifti.SUFFIXES, *arrays.SUFFIXES))


def read_scan(path: Path) -> Scan:
    """The volume in a file or a folder of slices; DataError for anything else and for voxels that are no numbers."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: does not exist")
    if path.is_dir():
        scan = dicom.read_dicom(path)
    elif path.name.lower().endswith(nifti.SUFFIXES):
        scan = nifti.read_nifti(path)
    elif path.name.lower().endswith(arrays.SUFFIXES):
        scan = arrays.read_array_file(path)
    else:
        raise DataError(f"{path}: is no volume; expected .nii, .nii.gz, .npy, .npz or a folder of DICOM slices")
    if scan.values.dtype.kind == "f" and (count := int((~np.isfinite(scan.values)).sum())):
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(scan.values))[0][1:])
        raise DataError(f"{path}: {count:,} voxels are NaN or infinite, {place} first; replace them by a number")
    return scan
