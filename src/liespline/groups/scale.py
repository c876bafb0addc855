"""Isotropic scalings R⁺ of R^d (app. B)."""

import math

from torch import Tensor

from .._check import whole
from . import even
from .base import Even, Group


class Scale(Group):
    """Scalings of R^d; elements are factors `(*batch, 1)`, Log is their natural logarithm and det h = s^d."""

    dim = 1
    element_shape = (1,)

    def __init__(self, space_dim: int = 2) -> None:
        self.space_dim = whole("Scale", "space_dim", space_dim)

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

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Return e^{i·spacing}, i = 0 … n − 1: the paper's scales, starting at the identity."""
        whole(f"uniform of {self!r}", "n", n)
        if spacing is None:
            need = "needs the step in ln s, for instance spacing=0.5*math.log(2)"
            raise ValueError(f"uniform: no spacing for {self!r}, which {need}")
        if not 0 < spacing < math.inf:
            raise ValueError(f"uniform: spacing = {spacing} for {self!r}, must be a positive number")
        return Even(even.steps(n, spacing).exp(), even.constant(n, spacing), float(spacing))
