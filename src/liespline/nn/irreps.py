"""Between feature maps on H and coefficients of irreducible representations, which e3nn and escnn compute with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .. import functional
from .._check import whole
from .._torch import as_new
from ..grids import Grid
from ..grids.grid import on_cpu
from . import arguments
from .shift import Shiftable, renew


class _Linear(Shiftable):
    """A fixed matrix on axis 2 of `(B, C, …, *space)`, derived from a grid wherever that is."""

    matrix: Tensor

    def __init__(self, grid: Grid, l_max: int) -> None:
        super().__init__()
        self.grid = arguments.grid(type(self).__name__, "grid", grid)
        self.l_max = whole(type(self).__name__, "l_max", l_max, least=0)
        self.register_buffer("matrix", as_new(self._exact_matrix()), persistent=False)

    @property
    def coefficients(self) -> int:
        """How many coefficients there are per channel: Σ (2l+1)² on SO(3), 1 + 2 l_max on SO(2)."""
        return sum(one.shape[0] * one.shape[1] for one in functional.irreps(self.grid, self.l_max))

    def _exact_matrix(self) -> Tensor:
        raise NotImplementedError

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> _Linear:
        super()._apply(fn, recurse)
        self._rederive()
        return self

    def _rederive(self) -> None:
        renew(self.matrix, self._exact_matrix())

    def forward(self, x: Tensor) -> Tensor:
        """Transform axis 2 of `(B, C, …, *space)`."""
        if x.ndim < 3 or x.shape[2] != self.matrix.shape[1]:
            raise ValueError(
                f"{type(self).__name__}: x has shape {tuple(x.shape)}; expected (B, C, {self.matrix.shape[1]}, *space) "
                f"for {self.extra_repr()}"
            )
        return functional.against(x, self.matrix)

    def extra_repr(self) -> str:
        """Show the grid and the last degree."""
        return f"{self.grid!r}, l_max={self.l_max}"


class ToIrreps(_Linear):
    """Fourier coefficients over H: F̂_l = Σ_h w(h) F(h) D^l(h), `(B, C, N_h, *space)` to `(B, C, M, *space)`.

    Axis 2 holds the degrees l = 0 … l_max one after the other, in each the 2l+1 columns of F̂_l; every column rotates
    with D^l, so each is a copy of irrep l. D^l are those of e3nn, so D¹(h) = h, and `e3nn.o3.Irreps(layer.irreps) * C`
    says what `layer(x).flatten(1, 2)` is made of. On SO(2) there is one copy, Σ_h w(h) F(h) (cos lθ, sin lθ).
    `FromIrreps` leads back, exactly where the grid's quadrature is: l_max = 1 on 12 and 24 rotations, 2 on 60, and
    (N_h − 1)/2 on SO(2).
    """

    def __init__(self, grid: Grid, l_max: int) -> None:
        super().__init__(grid, l_max)
        if self.coefficients > len(grid):
            raise ValueError(
                f"ToIrreps: l_max = {l_max} has {self.coefficients} coefficients, more than {len(grid)} elements of "
                f"{grid!r} can tell apart"
            )

    @property
    def irreps(self) -> str:
        """The representations of one channel, as e3nn writes them: "1x0e+3x1e+5x2e"."""
        copies = [len(one) for one in functional.irreps(self.grid, self.l_max)]
        return "+".join(f"{n}x{degree}e" for degree, n in enumerate(copies))

    @on_cpu
    def _exact_matrix(self) -> Tensor:
        rows = [one.flatten(0, 1) for one in functional.irreps(self.grid, self.l_max)]
        return torch.cat(rows) * self.grid.weights


class FromIrreps(_Linear):
    """The function on H with these Fourier coefficients: F(h) = 1/V Σ_l d_l tr(F̂_lᵀ D^l(h)), as `ToIrreps` orders them.

    d_l is the dimension of the irrep and V the volume of H; `(B, C, M, *space)` to `(B, C, N_h, *space)`.
    """

    @on_cpu
    def _exact_matrix(self) -> Tensor:
        rows = [one.shape[1] * one.flatten(0, 1) for one in functional.irreps(self.grid, self.l_max)]
        return torch.cat(rows).T / self.grid.weights.sum()
