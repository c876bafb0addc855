"""A blob in a patient, as scanners of several kinds write it."""

import numpy as np

from lab.scan_files import dicom_series, nifti

PLACE = np.array([2.0, -1.0, 3.0])  # of a blob in the patient, in mm from the middle: right, back, up
CT = (-1000.0, 1000.0)


def blob(points, place=PLACE, width=4.0):
    """Hounsfield units at points (..., 3) in mm."""
    return -1000 + 1500 * np.exp(-((points - place) ** 2).sum(-1) / (2 * width**2))


def places(shape, affine):
    """Where the voxels lie, in mm from the middle of the volume."""
    voxels = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), -1)
    points = voxels @ affine[:3, :3].T
    return points - points.reshape(-1, 3).mean(0)


def blob_nifti(path, shape, affine, dtype=np.int16, **how):
    return nifti(path, np.rint(blob(places(shape, affine), **how)).astype(dtype), affine)


def blob_dicom(folder, shape, step, spacing, **how):
    """Axial slices (rows, columns, slices): DICOM's x points left and its y back."""
    affine = np.diag([1.0, 1.0, 1.0, 1.0])
    affine[:3, :3] = np.array([[0, -spacing[1], 0], [-spacing[0], 0, 0], [0, 0, step]])
    return dicom_series(
        folder, np.rint(blob(places(shape, affine), **how)) + 1024, step=step, spacing=spacing, shift=-1024
    )
