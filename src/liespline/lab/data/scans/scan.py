"""What a volume is once its file has been read."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Array


@dataclass(frozen=True)
class Scan:
    """A volume `values` (C, *space), the size of its voxels in millimetres, and where it lies in the patient.

    Axes point right, forward and up (RAS+), whatever the file's order was: a network that knows rotations but no
    reflections would otherwise see left for right. `stored` (4, 4) maps voxels of the file to millimetres, `shape`
    is the file's own; both are None for bare arrays, which have no place in the world. `header` is that of a NIfTI
    file, for masks to be written as their images are.
    """

    values: Array
    spacing: tuple[float, ...]
    stored: Array | None = None
    shape: tuple[int, ...] | None = None
    header: Any = None

    def same_place(self, other: "Scan") -> bool:
        """Whether voxel by voxel both lie in the same place, to a tenth of a voxel."""
        if self.stored is None or other.stored is None:
            return True
        corners = np.array(np.meshgrid(*[(0, n - 1) for n in self.shape or ()], [1])).reshape(4, -1)
        apart = np.abs((self.stored - other.stored) @ corners)[:3].max()
        return bool(apart < 0.1 * min(self.spacing))
