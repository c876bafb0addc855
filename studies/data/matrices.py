"""Distributions over 2×2 matrices: by which a generated set moves its images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liespline.lab.data.arrays import Array

Range = tuple[float, float]


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
