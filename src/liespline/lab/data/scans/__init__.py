"""Medical and scientific volumes; `read` opens their files: NIfTI, DICOM series, `.npy` and `.npz`."""

from .reading import Reading, cube_side, resample
from .scan import Scan

__all__ = ["Reading", "Scan", "cube_side", "resample"]
