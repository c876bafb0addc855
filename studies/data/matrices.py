"""Sets of images that are transformed once: distributions over 2×2 matrices, and small grey images moved by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from liespline.lab.data.arrays import Array
from liespline.lab.transforms import resampled

Range = tuple[float, float]
_BLOCK_SAMPLES = 1 << 22
_ROUNDING = 1e-6
"""How far from the edge numbers are rounded, so that no last bit decides."""


@dataclass(frozen=True)
class Matrices:
    """The matrices M = z R(θ) [[1, k], [0, 1]] diag(a, b) of points (row, column), each number uniform in its range.

    R(θ) rotates counter-clockwise on the screen. With `anywhere`, the transformed image is also shifted, to any place
    where all of it stays in view.
    """

    turn: Range = (0, 0)
    """θ in degrees."""
    zoom: Range = (1, 1)
    stretch: Range = (1, 1)
    """a and b, drawn apart."""
    slant: Range = (0, 0)
    anywhere: bool = False

    def draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Draw matrices (count, 2, 2)."""
        ranges = (self.turn, self.zoom, self.stretch, self.stretch, self.slant)
        draws = rng.random((len(ranges), count))
        turn, z, a, b, k = (low + (high - low) * row for (low, high), row in zip(ranges, draws, strict=True))
        cos, sin = np.cos(np.radians(turn)), np.sin(np.radians(turn))
        turned = np.stack([cos, -sin, sin, cos], -1).reshape(-1, 2, 2)
        slanted = np.stack([a, k * b, np.zeros_like(a), b], -1).reshape(-1, 2, 2)
        return np.asarray(z[:, None, None] * turned @ slanted)


def places(images: Array, matrices: NDArray[np.float64], side: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Shifts (N, 2), uniform where no lit pixel of an image (H, W), transformed by its matrix, leaves `side`²."""
    centre, limit = (np.array(images.shape[1:]) - 1) / 2, (side - 1) / 2
    ranges = np.zeros((len(images), 2, 2))  # image, axis, lowest and highest
    for number, (image, matrix) in enumerate(zip(images, matrices, strict=True)):
        lit = (np.argwhere(image > 0) - centre) @ matrix.T
        if len(lit):
            ranges[number] = np.stack([-limit - lit.min(0), limit - lit.max(0)], -1)
    low, high = ranges[..., 0], ranges[..., 1]
    low, high = np.where(low > high, (low + high) / 2, low), np.where(low > high, (low + high) / 2, high)
    return np.asarray(low + (high - low) * rng.random((len(images), 2)))


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
