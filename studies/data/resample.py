"""Small grey images transformed in one interpolation, for sets that are transformed once."""

import numpy as np
import torch
from numpy.typing import NDArray

from liespline.lab.data.arrays import Array
from liespline.lab.transforms import resampled

_BLOCK_SAMPLES = 1 << 22
_ROUNDING = 1e-6
"""How far from the edge numbers are rounded, so that no last bit decides."""


def transformed(
    images: Array, matrices: NDArray[np.float64], side: int, offsets: NDArray[np.float64] | None = None
) -> NDArray[np.uint8]:
    """Images f(Ax + b) of f (N, H, W) in [0, 1], one matrix A and offset b each, x in samples from the centre.

    Bicubic, straight from the stored pixels, black around: (N, side, side). Where A reaches further than a pixel, the
    image shrinks, and each new pixel is the mean over all that it covers. In float64, for the same images on every
    machine: in float32, one in some 300 has another pixel on another processor.
    """
    out = np.empty((len(images), side, side), np.uint8)
    reach = np.linalg.norm(matrices, 2, (1, 2))
    finer = np.maximum(1, np.ceil(reach - _ROUNDING)).astype(int)  # samples per new pixel along an axis
    for times in np.unique(finer):
        every = np.flatnonzero(finer == times)
        step = max(1, _BLOCK_SAMPLES // (int(times) * side) ** 2)
        for start in range(0, len(every), step):
            rows = every[start : start + step]
            block = torch.from_numpy(images[rows].astype(np.float64)).unsqueeze(1)
            matrix = torch.from_numpy(matrices[rows]) / int(times)
            offset = None if offsets is None else torch.from_numpy(offsets[rows])
            fine = resampled(block, matrix, (int(times) * side,) * 2, "bicubic", offset)
            moved = torch.nn.functional.avg_pool2d(fine, int(times)) if times > 1 else fine
            out[rows] = (moved[:, 0].clamp(0, 1) * 255 + _ROUNDING).round().to(torch.uint8).numpy()
    return out
