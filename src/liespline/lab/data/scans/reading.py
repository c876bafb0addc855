"""How a scan comes to a network: its intensities brought to one size, its voxels made cubes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import Array
from .intensity import Intensity
from .scan import Scan
from .spacing import cubes, isotropic, resample


@dataclass(frozen=True)
class Reading:
    """How volumes become samples: the window of their intensities, and the side in millimetres of all voxels."""

    window: tuple[float, float] | None = None
    side: float | None = None

    def __post_init__(self) -> None:
        Intensity(self.window)  # refuses a window that is none before anything is read

    def for_all(self, spacings: Sequence[tuple[float, ...]]) -> Reading:
        """With the side as stated, or one that about keeps the number of voxels of the usual volume."""
        return replace(self, side=self.side or round(isotropic(np.median(spacings, axis=0).tolist())[0], 3))

    def samples(self, scan: Scan) -> Array:
        """What a network sees of a scan: float32 (C, *space) on cubes."""
        return self.on_cubes(scan, Intensity(self.window)(scan.values))

    def on_cubes(self, scan: Scan, values: Array, nearest: bool = False) -> Array:
        """Values (C, *space) on the grid of a scan, brought to the cubes; `nearest` is for masks."""
        if self.side is None or not self.resamples(scan.spacing):
            return values
        return resample(values, *cubes(scan, self.side), nearest=nearest)

    def on_own_grid(self, mask: Array, space: Sequence[int], spacing: Sequence[float]) -> Array:
        """A mask on the cubes, brought back to the grid of its scan: `space` voxels of this `spacing`."""
        if self.side is None or not self.resamples(spacing):
            return mask
        return resample(mask[None], space, [own / self.side for own in spacing], nearest=True)[0]

    def resamples(self, spacing: Sequence[float]) -> bool:
        """Whether voxels of this spacing are brought to others."""
        return self.side is not None and isotropic(spacing, self.side)[1]

    @property
    def words(self) -> str:
        """The scaling of intensities, for remarks."""
        return f"window {self.window}" if self.window else "volume by volume"
