"""Medical and scientific volumes; `read` opens their files: NIfTI, DICOM series, `.npy` and `.npz`."""

from .reading import Reading, Scan, cube_side, resample

__all__ = ["Reading", "Scan", "cube_side", "resample"]
