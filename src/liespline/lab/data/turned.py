"""Small grey images turned in one interpolation, for sets that are rotated once."""

import numpy as np
import torch
from numpy.typing import NDArray

from ..moving import resampled, rotations
from .rows import Array

_BLOCK = 4096


def turned(
    images: Array,
    angles: NDArray[np.float64],
    side: int,
    magnification: float | NDArray[np.float64] = 1.0,
    about: NDArray[np.float64] | None = None,
) -> NDArray[np.uint8]:
    """Images (N, H, W) in [0, 1], magnified by one factor or each by its own, turned by `angles`, centred on black.


    Counter-clockwise, bicubic, straight from the stored pixels: (N, side, side). What comes to lie in the centre is
    the old centre, or points `about` (N, 2) in samples from it.
    """
    out = np.empty((len(images), side, side), np.uint8)
    factors = np.broadcast_to(np.asarray(magnification, np.float32), len(images))
    for start in range(0, len(images), _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = torch.from_numpy(images[rows].astype(np.float32)).unsqueeze(1)
        angle = torch.from_numpy(angles[rows].astype(np.float32))
        factor = torch.from_numpy(factors[rows].copy())
        offset = None if about is None else torch.from_numpy(about[rows].astype(np.float32))
        moved = resampled(block, rotations(angle) / factor.view(-1, 1, 1), (side, side), "bicubic", offset)
        out[rows] = (moved[:, 0].clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    return out


def centres_of_mass(images: Array) -> NDArray[np.float64]:
    """Where the brightness of images (N, H, W) is centred, in samples from their centre: (N, 2); 0 for black ones."""
    rows, columns = (np.arange(n) - (n - 1) / 2 for n in images.shape[1:])
    bright = images.astype(np.float64)
    mass = np.maximum(bright.sum((1, 2)), 1e-12)
    return np.stack([bright.sum(2) @ rows / mass, bright.sum(1) @ columns / mass], -1)
