"""Medical and scientific volumes as they lie on disk: NIfTI, DICOM series, `.npy` and `.npz`."""

from .intensity import Intensity
from .read import SCAN_FORMATS, is_scan, read_scan, stem
from .reading import Reading
from .scan import Scan
from .spacing import cube_side, cubes, isotropic, resample

__all__ = [
    "SCAN_FORMATS", "Intensity", "Reading", "Scan", "cube_side", "cubes", "is_scan", "isotropic", "read_scan",
    "resample", "stem",
]  # fmt: skip
