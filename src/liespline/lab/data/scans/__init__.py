"""Medical and scientific volumes; `read` opens their files: NIfTI, DICOM series, `.npy` and `.npz`."""

from .intensity import Intensity
from .reading import Reading
from .scan import Scan
from .spacing import cube_side, cubes, isotropic, resample

__all__ = ["Intensity", "Reading", "Scan", "cube_side", "cubes", "isotropic", "resample"]
