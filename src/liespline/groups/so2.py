"""Rotations of the plane (app. B)."""

import math

import torch
from torch import Tensor

from . import even
from .base import Even, Group


class SO2(Group):
    """Rotations of R², elements are angles `(*batch, 1)` in [−π, π); a positive one is counter-clockwise on screen.

    Coordinate 0 of a point runs down the rows of an image and coordinate 1 along its columns, so the usual
    matrix of R_θ turns an image the way `torch.rot90(image, 1, (-2, -1))` does.
    """

    dim = 1
    space_dim = 2
    element_shape = (1,)
    period = volume = 2 * math.pi

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return wrap(g + h)

    def inverse(self, h: Tensor) -> Tensor:
        return wrap(-h)

    def exp(self, a: Tensor) -> Tensor:
        return wrap(a)

    def log(self, h: Tensor) -> Tensor:
        return wrap(h)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        cos, sin = h[..., 0].cos(), h[..., 0].sin()
        return torch.stack((cos * x[..., 0] - sin * x[..., 1], sin * x[..., 0] + cos * x[..., 1]), -1)

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Return the angles i·2π/n."""
        step = 2 * math.pi / even.count(self, n, spacing)
        return Even(even.steps(n, step), even.constant(n, step), step)


def wrap(angle: Tensor) -> Tensor:
    """Return the angle in [−π, π); those already there come back unrounded."""
    return angle - 2 * math.pi * torch.floor((angle + math.pi) / (2 * math.pi))
