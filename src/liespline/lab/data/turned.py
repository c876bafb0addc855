"""Small grey images turned about their centre in one interpolation, for sets that are rotated once."""

import numpy as np
import torch
from numpy.typing import NDArray

from ..moving import resampled, rotations
from .rows import Array

_BLOCK = 4096


def turned(
    images: Array, angles: NDArray[np.float64], side: int, magnification: float | NDArray[np.float64] = 1.0
) -> NDArray[np.uint8]:
    """Images (N, H, W) in [0, 1], magnified by one factor or each by its own, turned by `angles`, centred on black.

    Counter-clockwise, bicubic, straight from the stored pixels: (N, side, side).
    """
    out = np.empty((len(images), side, side), np.uint8)
    factors = np.broadcast_to(np.asarray(magnification, np.float32), len(images))
    for start in range(0, len(images), _BLOCK):
        block = torch.from_numpy(images[start : start + _BLOCK].astype(np.float32)).unsqueeze(1)
        angle = torch.from_numpy(angles[start : start + _BLOCK].astype(np.float32))
        factor = torch.from_numpy(factors[start : start + _BLOCK].copy())
        moved = resampled(block, rotations(angle) / factor.view(-1, 1, 1), (side, side), "bicubic")
        out[start : start + _BLOCK] = (moved[:, 0].clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    return out
