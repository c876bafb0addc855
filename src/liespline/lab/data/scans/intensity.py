"""From the units of a scanner to numbers of one size."""

from dataclasses import dataclass

import numpy as np

from ..arrays import Array
from ..files import DataError

TAILS = (0.5, 99.5)  # percentiles


@dataclass(frozen=True)
class Intensity:
    """How voxels become floats: by a stated window, or volume by volume where the scanner's units mean nothing.

    With `window` = (low, high): (v − low) / (high − low), cut to [0, 1]; for CT, (−160, 240) shows soft tissue.
    Without: v is cut to its percentiles 0.5 and 99.5, then (v − mean) / std, channel by channel.
    """

    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.window is not None and not self.window[0] < self.window[1]:
            raise DataError(f"window {self.window}: the first number must be below the second")

    def __call__(self, values: Array) -> Array:
        """Voxels (C, *space) of any dtype as float32."""
        floats = values.astype(np.float32)
        if self.window is not None:
            low, high = self.window
            return np.clip((floats - low) / (high - low), 0, 1).astype(np.float32)
        out = np.empty_like(floats)
        for channel, target in zip(floats, out, strict=True):
            low, high = np.percentile(channel, TAILS)
            cut = np.clip(channel, low, high)
            target[...] = (cut - cut.mean(dtype=np.float64)) / max(
                float(cut.std(dtype=np.float64)), 1e-6 * max(abs(high), 1e-30)
            )
        return out
