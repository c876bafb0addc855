"""All 2×2 matrices that keep the orientation of the plane, by a polar chart."""

import math

import torch
from torch import Tensor

from .base import Group
from .linear import apply, stretch_ratio


class GL2(Group):
    """2×2 matrices `(*batch, 2, 2)` of positive determinant: turns, zooms, shears and squeezes of R².

    Log takes a matrix apart as e^S R, S symmetric and R a turn, where the matrix logarithm exists only near the
    identity; e^S R does so everywhere, in closed form. Algebra vectors are (zoom, squeeze along the axes, squeeze along
    the diagonals, turn): S = a₀ I + a₁ diag(1, −1) + a₂ [[0, 1], [1, 0]], R turns by a₃.
    """

    dim = 4
    space_dim = 2
    element_shape = (2, 2)
    period = (None, None, None, 2 * math.pi)
    chart = True

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g @ h

    def inverse(self, h: Tensor) -> Tensor:
        (a, b), (c, d) = (row.unbind(-1) for row in h.unbind(-2))
        return _matrix(d, -b, -c, a) / (a * d - b * c).unsqueeze(-1).unsqueeze(-1)

    def exp(self, a: Tensor) -> Tensor:
        zoom, first, second, angle = a.unbind(-1)
        square = first * first + second * second
        # e^S = e^{a₀} (cosh m I + sinh(m)/m (S − a₀ I)), m² = a₁² + a₂²
        near = square < 1e-2
        m = torch.where(near, 1.0, square).sqrt()
        cosh = torch.where(near, _series(square, 0), m.cosh())
        sinhc = torch.where(near, _series(square, 1), m.sinh() / m)
        stretch = _matrix(cosh + sinhc * first, sinhc * second, sinhc * second, cosh - sinhc * first)
        cos, sin = angle.cos(), angle.sin()
        return zoom.exp().unsqueeze(-1).unsqueeze(-1) * (stretch @ _matrix(cos, -sin, sin, cos))

    def log(self, h: Tensor) -> Tensor:
        (a, b), (c, d) = (row.unbind(-1) for row in h.unbind(-2))
        root = (a * d - b * c).sqrt()
        cos, sin = (a + d) / root, (c - b) / root  # of the turn nearest to h, times 2 cosh m
        size = torch.hypot(cos, sin)
        # e^S = h Rᵀ: its two traceless entries over √det, which are sinh(m)/m times a₁ and a₂
        first = ((a - d) * cos - (b + c) * sin) / (2 * root * size)
        second = ((a - d) * sin + (b + c) * cos) / (2 * root * size)
        ratio = stretch_ratio(first * first + second * second)
        return torch.stack((root.log(), ratio * first, ratio * second, torch.atan2(sin, cos)), -1)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return apply(h, x)

    def contains(self, h: Tensor) -> Tensor:
        """Matrices are finite and have a positive determinant."""
        return h.flatten(-2).isfinite().all(-1) & (h[..., 0, 0] * h[..., 1, 1] > h[..., 0, 1] * h[..., 1, 0])


def _matrix(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return torch.stack((a, b, c, d), -1).unflatten(-1, (2, 2))


def _series(square: Tensor, odd: int) -> Tensor:
    """Return cosh m (odd = 0) or sinh(m)/m (odd = 1) for small m²."""
    total = torch.ones_like(square)
    for n in range(6, 0, -1):
        total = 1 + square / ((2 * n + odd) * (2 * n + odd - 1)) * total
    return total
