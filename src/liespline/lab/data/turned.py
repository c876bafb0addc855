"""Small grey images turned about their centre in one interpolation, for sets that are rotated once."""

import numpy as np
import torch
from numpy.typing import NDArray

from .rows import Array

_BLOCK = 4096


def turned(images: Array, angles: NDArray[np.float64], side: int, magnification: float = 1.0) -> NDArray[np.uint8]:
    """Images (N, H, W) in [0, 1], magnified, turned counter-clockwise by `angles` and centred on black.

    Bicubic, straight from the stored pixels: (N, side, side).
    """
    out = np.empty((len(images), side, side), np.uint8)
    extent = [side / (magnification * size) for size in images.shape[1:]]  # of the output, in halves of the input
    for start in range(0, len(images), _BLOCK):
        block = torch.from_numpy(images[start : start + _BLOCK].astype(np.float32))
        angle = torch.from_numpy(angles[start : start + _BLOCK].astype(np.float32))
        cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
        # Rows of theta give the source's (x, y) for the output's (x, y); y points down.
        theta = torch.stack([extent[1] * cos, -extent[0] * sin, zero, extent[1] * sin, extent[0] * cos, zero], -1)
        shape = [len(block), 1, side, side]
        grid = torch.nn.functional.affine_grid(theta.view(-1, 2, 3), shape, align_corners=False)
        moved = torch.nn.functional.grid_sample(block.unsqueeze(1), grid, mode="bicubic", align_corners=False)
        out[start : start + _BLOCK] = (moved[:, 0].clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    return out
