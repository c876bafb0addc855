"""The transformations of a square or a cube that interpolate nothing: only the data can tell them apart."""

import itertools
import math
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Matrix = NDArray[np.int64]
_REFLECTIONS: dict[tuple[int, ...], str] = {
    (-1, 0, 0, 1): "reflected top to bottom",
    (1, 0, 0, -1): "reflected left to right",
    (0, 1, 1, 0): "reflected in the diagonal",
    (0, -1, -1, 0): "reflected in the antidiagonal",
}


class Transformations:
    """The 8 of a square or the 48 of a cube of `side` samples as permutations of these; the identity is number 0."""

    def __init__(self, side: int, dimensions: int) -> None:
        self.side, self.dimensions = side, dimensions
        self.matrices = signed_permutations(dimensions)
        index = np.arange(side**dimensions).reshape((side,) * dimensions)
        self._index = torch.from_numpy(np.stack([transformed(index, m).ravel() for m in self.matrices]))

    def __len__(self) -> int:
        return len(self.matrices)

    @cached_property
    def disc(self) -> Tensor:
        """The samples of the largest disc or ball, which all of them map onto itself: (*space)."""
        place = torch.linspace(-1, 1, self.side)
        axes = torch.meshgrid(*[place] * self.dimensions, indexing="ij")
        return torch.stack(axes).square().sum(0) <= 1

    @cached_property
    def names(self) -> list[str]:
        """What each does: an angle or a line in the plane; in space which axis, with its sign, comes to which."""
        return [name(matrix) for matrix in self.matrices]

    def apply(self, images: Tensor, which: Tensor) -> Tensor:
        """Transform images (B, C, *space), each by the number in `which` (B,)."""
        index = self._index[which].unsqueeze(1).expand(-1, images.shape[1], -1)
        return images.flatten(2).gather(2, index).view_as(images)


def signed_permutations(dimensions: int) -> list[Matrix]:
    """The matrices of the square's or the cube's symmetries: the identity, the other rotations, the reflections."""
    found = []
    for order in itertools.permutations(range(dimensions)):
        for signs in itertools.product((1, -1), repeat=dimensions):
            matrix = np.zeros((dimensions, dimensions), np.int64)
            matrix[range(dimensions), order] = signs
            found.append(matrix)
    return sorted(found, key=lambda m: (not (m == np.eye(dimensions)).all(), not is_rotation(m)))


def is_rotation(matrix: Matrix) -> bool:
    """Whether a matrix keeps left and right apart."""
    return bool(np.linalg.det(matrix) > 0)


def transformed(image: Matrix, matrix: Matrix) -> Matrix:
    """The image whose value at u is that of `image` at M⁻¹u, both counted from the middle."""
    backwards = tuple(int(axis) for axis in np.flatnonzero(matrix.sum(1) < 0))
    return np.flip(np.transpose(image, np.abs(matrix).argmax(1)), backwards)


def name(matrix: Matrix) -> str:
    """A transformation in words."""
    if len(matrix) == 3:
        axes = np.abs(matrix).argmax(1)
        return "axes " + " ".join(
            f"{'-' if row.sum() < 0 else '+'}{axis}" for row, axis in zip(matrix, axes, strict=True)
        )
    if is_rotation(matrix):
        return f"rotated by {round(math.degrees(math.atan2(matrix[1, 0], matrix[0, 0]))) % 360}°"
    return _REFLECTIONS[tuple(matrix.ravel().tolist())]
