"""Activations on more elements of H than the feature map has, which follow rotations between those of the grid."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .. import functional
from .._check import whole
from .._torch import as_new
from ..grids import Grid
from ..grids.grid import on_cpu
from . import arguments
from .shift import renew


class OverH(nn.Module):
    """A constant matrix `(M, N)` on H: `(B, C, N, *space)` to `(B, C, M, *space)`, from float64 in every dtype."""

    matrix: Tensor

    def __init__(self, exact: Tensor) -> None:
        super().__init__()
        self._exact = exact
        self.register_buffer("matrix", as_new(exact), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> OverH:
        super()._apply(fn, recurse)
        renew(self.matrix, self._exact)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Map the elements of `(B, C, N, *space)`."""
        return functional.over_h(self.matrix, x)

    def extra_repr(self) -> str:
        """Show the numbers of elements."""
        return f"{self.matrix.shape[1]} → {self.matrix.shape[0]}"


class Oversampled(nn.Sequential):
    """An activation on `times` as many orientations: up by trigonometric interpolation along H, activation, and back.

    A pointwise activation makes harmonics on H that a grid of n orientations cannot hold; they come back as lower ones,
    which do not rotate with the input. On twice as many, most of them are told apart and left out. Back is the nearest
    function on the grid (least squares), so that without an activation nothing changes. Grids whose rotations are in
    equal steps, of SO(2), O(2) and products with scales; a ValueError for others.
    """

    def __init__(self, activation: nn.Module, grid: Grid, times: int = 2) -> None:
        whole("Oversampled", "times", times)
        up, down = _up_and_down(arguments.grid("Oversampled", "grid", grid), times)
        super().__init__(OverH(up), activation, OverH(down))


@on_cpu
def _up_and_down(grid: Grid, times: int) -> tuple[Tensor, Tensor]:
    up = functional.interpolation(grid, times)
    return up, torch.linalg.pinv(up)
