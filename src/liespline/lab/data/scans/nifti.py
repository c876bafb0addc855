"""NIfTI volumes by nibabel, with the voxel size and the orientation that they state."""

import gzip
import math
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform

from ..arrays import Array
from ..files import DataError, check_declared_size, replaced
from .scan import Scan

SUFFIXES = (".nii", ".nii.gz")
_RAS = axcodes2ornt(("R", "A", "S"))


def read_nifti(path: Path) -> Scan:
    """A volume (1, X, Y, Z), or (C, X, Y, Z) of a file whose fourth axis holds channels."""
    try:
        image: Any = nibabel.load(path)
        header, affine = image.header, image.affine
        codes = int(header["sform_code"]), int(header["qform_code"])
        shape = tuple(int(n) for n in image.shape)
        check_declared_size(path, math.prod(shape) * header.get_data_dtype().itemsize, f"a volume of {shape}")
        _check(path, shape, codes, affine)
        values = np.asarray(image.dataobj)
    except DataError:
        raise
    except Exception as error:  # nibabel's readers raise almost anything on damaged files
        raise DataError(f"{path}: cannot be read as NIfTI ({_line(error)}); it is damaged: fetch it again") from error
    if values.dtype.kind not in "iuf":
        raise DataError(f"{path}: has voxels of kind {values.dtype}; save it as whole numbers or float32")
    upright = apply_orientation(values, ornt_transform(io_orientation(affine), _RAS))
    spacing = np.abs(nibabel.affines.voxel_sizes(affine))
    order = np.argsort(io_orientation(affine)[:, 0])
    channels = upright[None] if upright.ndim == 3 else np.moveaxis(upright, -1, 0)
    return Scan(channels, tuple(float(spacing[axis]) for axis in order), affine, shape[:3], header)


def _check(path: Path, shape: tuple[int, ...], codes: tuple[int, int], affine: Array) -> None:
    if not any(codes):
        raise DataError(
            f"{path}: has no affine (sform_code and qform_code are 0), so the size and orientation of its voxels "
            "are unknown; set it with the program that made the file"
        )
    if len(shape) not in (3, 4) or min(shape) < 1:
        raise DataError(f"{path}: has shape {shape}; expected (X, Y, Z) or (X, Y, Z, channels)")
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-12:
        raise DataError(f"{path}: its affine cannot be inverted; set it with the program that made the file")


def write_nifti(path: Path, mask: Array, like: Scan) -> None:
    """Write a mask (*space) that lies as `like` does, in the order of axes of the file that `like` was read from.

    A NIfTI file's header is kept: units, both affines with their codes, sizes of voxels, descriptions and extensions.
    What it says about values is the mask's: their type, scaling, range and intent.
    """
    if like.stored is None:
        affine, values = np.diag([*like.spacing, 1.0]), mask
    else:
        affine = like.stored
        values = apply_orientation(mask, ornt_transform(_RAS, io_orientation(affine)))
    image = _image(np.ascontiguousarray(values), affine, like.header)
    with replaced(path) as part, open(part, "wb") as stream:
        data = image.to_bytes()
        stream.write(gzip.compress(data, 6, mtime=0) if path.suffix == ".gz" else data)


def _image(values: Array, affine: Array, header: Any) -> Any:
    if header is None:
        image: Any = nibabel.Nifti1Image(values, affine, dtype=values.dtype)
        image.set_sform(affine, 1)
        image.set_qform(affine, 1, strip_shears=True)
        image.header.set_xyzt_units("mm")
        return image
    header = header.copy()
    header.set_data_dtype(values.dtype)
    header["cal_min"] = header["cal_max"] = 0
    header.set_intent("none")
    kind = nibabel.Nifti2Image if isinstance(header, nibabel.Nifti2Header) else nibabel.Nifti1Image
    return kind(values, affine, header, dtype=values.dtype)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
