"""Isotropic scalings R⁺ of R^d (app. B)."""

from __future__ import annotations

from torch import Tensor

from .base import Group, positive_dimension


class Scale(Group):
    """Scalings of R^d; elements are factors `(*batch, 1)`, Log is their natural logarithm and det h = s^d."""

    dim = 1
    element_shape = (1,)

    def __init__(self, space_dim: int = 2) -> None:
        self.space_dim = positive_dimension("Scale", space_dim)

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g * h

    def inverse(self, h: Tensor) -> Tensor:
        return 1 / h

    def exp(self, a: Tensor) -> Tensor:
        return a.exp()

    def log(self, h: Tensor) -> Tensor:
        return h.log()

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return h * x

    def contains(self, h: Tensor) -> Tensor:
        """Scale factors are positive and finite."""
        return ((h > 0) & h.isfinite()).all(-1)
