"""H = {e}: the plain CNN as a special case, not as another code path."""

import torch
from torch import Tensor

from .._check import whole
from . import even
from .base import Even, Group


class Trivial(Group):
    """The group of one element acting on R^d; elements and algebra vectors are empty, `(*batch, 0)`."""

    dim = 0
    element_shape = (0,)
    volume = 1.0

    def __init__(self, space_dim: int = 2) -> None:
        self.space_dim = whole("Trivial", "space_dim", space_dim)

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g + h

    def inverse(self, h: Tensor) -> Tensor:
        return h

    def exp(self, a: Tensor) -> Tensor:
        return a

    def log(self, h: Tensor) -> Tensor:
        return h

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return x.expand(*torch.broadcast_shapes(h.shape[:-1], x.shape[:-1]), self.space_dim)

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Return its one element."""
        if even.count(self, n, spacing) != 1:
            raise ValueError(f"uniform: n = {n} for {self!r}; there is 1")
        return Even(torch.zeros(1, 0), even.constant(1, 1.0), 1.0)
