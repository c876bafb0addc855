"""R^d itself (app. B): the group on which spatial spline centres live."""

from torch import Tensor

from .._check import whole
from .base import Even, Group


class Translation(Group):
    """Translations of R^d; elements, algebra vectors and points are all `(*batch, d)`."""

    def __init__(self, space_dim: int = 2) -> None:
        self.dim = self.space_dim = whole("Translation", "space_dim", space_dim)
        self.element_shape = (space_dim,)

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g + h

    def inverse(self, h: Tensor) -> Tensor:
        return -h

    def exp(self, a: Tensor) -> Tensor:
        return a

    def log(self, h: Tensor) -> Tensor:
        return h

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return h + x

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Say that there is `lattice`."""
        raise ValueError(f"uniform: n = {n} for {self!r}; there is lattice(d, n) instead")
