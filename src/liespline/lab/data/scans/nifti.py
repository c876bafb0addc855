"""NIfTI volumes by nibabel, with the voxel size and the orientation that they state."""

import gzip
from pathlib import Path
from typing import Any

import nibabel
import numpy as np
from nibabel.affines import voxel_sizes
from nibabel.orientations import apply_orientation, axcodes2ornt, io_orientation, ornt_transform
from nibabel.spatialimages import SpatialImage

from ..arrays import Array
from ..files import DataError, decoding, replacing
from .reading import Scan

SUFFIXES = (".nii", ".nii.gz")


def read_nifti(path: Path) -> Scan:
    """A volume (1, X, Y, Z), or (C, X, Y, Z) of a file whose fourth axis holds channels."""
    with decoding(path, "cannot be read as NIfTI", "it is damaged: fetch it again"):
        image: Any = nibabel.load(path)
        header, affine, shape = image.header, image.affine, image.shape
        if not (int(header["sform_code"]) or int(header["qform_code"])):
            raise DataError(
                f"{path}: has no affine (sform_code and qform_code are 0), so the size and orientation of its voxels "
                "are unknown; set it with the program that made the file"
            )
        if len(shape) not in (3, 4) or min(shape) < 1:
            raise DataError(f"{path}: has shape {shape}; expected (X, Y, Z) or (X, Y, Z, channels)")
        if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-12:
            raise DataError(f"{path}: its affine cannot be inverted; set it with the program that made the file")
        values = np.asarray(image.dataobj)
    if values.dtype.kind not in "iuf":
        raise DataError(f"{path}: has voxels of kind {values.dtype}; save it as whole numbers or float32")
    return upright(values, affine, header)


def upright(values: Array, affine: Array, header: Any = None) -> Scan:
    """Voxels (X, Y, Z) or (X, Y, Z, C) as a file holds them, with their axes brought to right, forward and up."""
    image: Any = nibabel.as_closest_canonical(SpatialImage(values, affine))
    own = np.asarray(image.dataobj)
    channels = own[None] if own.ndim == 3 else np.moveaxis(own, -1, 0)
    return Scan(channels, tuple(map(float, voxel_sizes(image.affine))), affine, values.shape[:3], header)


def write_nifti(path: Path, mask: Array, like: Scan) -> None:
    """Write a mask (*space) that lies as `like` does, in the order of axes of the file that `like` was read from.

    A NIfTI file's header is kept: units, both affines with their codes, sizes of voxels, descriptions and extensions.
    What it says about values is the mask's: their type, scaling, range and intent.
    """
    affine, values = like.stored, mask
    if affine is None:
        affine = np.diag([*like.spacing, 1.0])
    else:
        values = apply_orientation(mask, ornt_transform(axcodes2ornt(("R", "A", "S")), io_orientation(affine)))
    image = _image(np.ascontiguousarray(values), affine, like.header)
    with replacing(path) as stream:
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
