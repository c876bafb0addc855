"""How a scan comes to a network: its intensities brought to one size, its voxels made cubes.

So a rotation of the samples is one of the patient.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..arrays import Array
from ..files import DataError


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

    def same_place(self, other: Self) -> bool:
        """Whether voxel by voxel both lie in the same place, to a tenth of a voxel."""
        if self.stored is None or other.stored is None:
            return True
        corners = np.array(np.meshgrid(*[(0, n - 1) for n in self.shape or ()], [1])).reshape(4, -1)
        apart = np.abs((self.stored - other.stored) @ corners)[:3].max()
        return bool(apart < 0.1 * min(self.spacing))


MOST_VOXELS = 2**30
ALIKE = 0.01  # sides within one percent are called equal
TAILS = (0.5, 99.5)  # percentiles


@dataclass(frozen=True)
class Reading:
    """How volumes become samples: the window of their intensities, and the side in millimetres of all voxels.

    With `window` = (low, high), v becomes (v − low) / (high − low), cut to [0, 1]; for CT, (−160, 240) shows soft
    tissue. Without, as where the scanner's units mean nothing, v is cut to its percentiles 0.5 and 99.5 and becomes
    (v − mean) / std, channel by channel.
    """

    window: tuple[float, float] | None = None
    side: float | None = None

    def __post_init__(self) -> None:
        if self.window is not None and not self.window[0] < self.window[1]:
            raise DataError(f"window {self.window}: the first number must be below the second")

    def for_all(self, spacings: Sequence[tuple[float, ...]]) -> Self:
        """With the side as stated, or one that about keeps the number of voxels of the usual volume."""
        return replace(self, side=self.side or round(cube_side(np.median(spacings, axis=0).tolist()), 3))

    def samples(self, scan: Scan) -> Array:
        """What a network sees of a scan: float32 (C, *space) on cubes."""
        return self.on_cubes(scan, self.normalised(scan.values))

    def normalised(self, values: Array) -> Array:
        """Voxels (C, *space) of any dtype as float32."""
        floats = values.astype(np.float32)
        if self.window is not None:
            low, high = self.window
            return np.clip((floats - low) / (high - low), 0, 1).astype(np.float32)
        for channel in floats:
            low, high = np.percentile(channel, TAILS)
            np.clip(channel, low, high, out=channel)
            least = 1e-6 * max(abs(high), 1e-30)  # a channel of one value becomes zeros
            channel[...] = (channel - channel.mean(dtype=np.float64)) / max(channel.std(dtype=np.float64), least)
        return floats

    def on_cubes(self, scan: Scan, values: Array, nearest: bool = False) -> Array:
        """Values (C, *space) on the grid of a scan, brought to the cubes; `nearest` is for masks."""
        if self.side is None or not self.resamples(scan.spacing):
            return values
        steps = [self.side / own for own in scan.spacing]
        sizes = [max(1, round(n / step)) for n, step in zip(values.shape[1:], steps, strict=True)]
        if math.prod(sizes) > MOST_VOXELS:
            size = "×".join(map(str, sizes))
            raise DataError(f"spacing {self.side:g} mm: a volume would have {size} voxels, too many; take larger ones")
        return resample(values, sizes, steps, nearest=nearest)

    def on_own_grid(self, masks: Array, space: Sequence[int], spacing: Sequence[float]) -> Array:
        """Masks (K, *cubes), or maps, brought back to the grid of their scan: `space` voxels of this `spacing`."""
        if self.side is None or not self.resamples(spacing):
            return masks
        return resample(masks, space, [own / self.side for own in spacing], nearest=True)

    def resamples(self, spacing: Sequence[float]) -> bool:
        """Whether voxels of this spacing are brought to others."""
        return self.side is not None and any(abs(own / self.side - 1) > ALIKE for own in spacing)

    @property
    def words(self) -> str:
        """The scaling of intensities, for remarks."""
        return f"window {self.window}" if self.window else "volume by volume"


def cube_side(spacing: Sequence[float]) -> float:
    """The side of a cube as large as a voxel: the geometric mean of its sides."""
    return float(math.prod(spacing) ** (1 / len(spacing)))


def resample(values: Array, sizes: Sequence[int], steps: Sequence[float], nearest: bool = False) -> Array:
    """`values` (C, *space) at `sizes` new samples, `steps` old ones apart along each axis, the centre kept.

    Linear between samples; where steps exceed 1, the weights widen with them so that nothing is skipped:
    w(x) ∝ max(0, 1 − |x| / max(1, step)). `nearest` takes the nearest sample instead, for masks.
    """
    out = values if nearest else values.astype(np.float32)
    for axis, (size, step) in enumerate(zip(sizes, steps, strict=True), 1):
        own = out.shape[axis]
        places = (np.arange(size) - (size - 1) / 2) * step + (own - 1) / 2
        places = places.clip(0, own - 1)
        if nearest:
            out = np.take(out, np.floor(places + 0.5).astype(np.int64).clip(0, own - 1), axis)
            continue
        weights = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(own)) / max(1.0, step))
        weights = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
        out = np.moveaxis(np.tensordot(out, weights, (axis, 1)), -1, axis)
    return np.ascontiguousarray(out)
