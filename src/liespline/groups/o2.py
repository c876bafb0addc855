"""Rotations and reflections of the plane."""

import math

import torch
from torch import Tensor

from . import even
from .base import Even, Group
from .so2 import SO2, wrap


class O2(Group):
    """Rotations and reflections of R²; elements are (θ, σ) `(*batch, 2)`: mirror by σ = ±1, then turn by θ.

    σ = −1 turns the sign of coordinate 1, which mirrors an image left to right as `torch.fliplr` does; with θ = π/2
    after it, the mirror's axis is a diagonal. The two signs are the two components.
    """

    dim = 1
    space_dim = 2
    element_shape = (2,)
    period = 2 * math.pi
    volume = 4 * math.pi

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return _pair(wrap(g[..., 0] + g[..., 1] * h[..., 0]), g[..., 1] * h[..., 1])

    def inverse(self, h: Tensor) -> Tensor:
        return _pair(wrap(-h[..., 1] * h[..., 0]), h[..., 1])

    def exp(self, a: Tensor) -> Tensor:
        angle = wrap(a[..., 0])
        return _pair(angle, torch.ones_like(angle))

    def log(self, h: Tensor) -> Tensor:
        return wrap(h[..., :1])

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        mirrored = torch.stack(torch.broadcast_tensors(x[..., 0], h[..., 1] * x[..., 1]), -1)
        return SO2().act(h[..., :1], mirrored)

    def component(self, h: Tensor) -> Tensor:
        return (h[..., 1] < 0).long()

    def representatives(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        return torch.tensor([[0.0, 1.0], [0.0, -1.0]], dtype=dtype, device=device)

    def contains(self, h: Tensor) -> Tensor:
        """Angles are finite and signs are 1 or −1."""
        return h[..., 0].isfinite() & ((h[..., 1].abs() - 1).abs() < 1e-3)

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Return n/2 rotations, then the same after the mirror: n elements, a group of their own."""
        if even.count(self, n, spacing) % 2:
            half = "half of the elements are reflections"
            raise ValueError(f"uniform: n = {n} for {self!r}, must be even, such as {n + 1}: {half}")
        angles, weights, step = SO2().uniform_elements(n // 2, None)
        signs = torch.ones_like(angles)
        elements = torch.cat((torch.cat((angles, signs), -1), torch.cat((angles, -signs), -1)))
        return Even(elements, weights.repeat(2), step)


def _pair(angle: Tensor, sign: Tensor) -> Tensor:
    return torch.stack(torch.broadcast_tensors(angle, sign), -1)
