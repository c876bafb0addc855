"""Where each element of a grid points, for vectors read off H."""

from __future__ import annotations

import torch
from torch import Tensor

from ..grids import Grid
from ..grids.grid import on_cpu


@on_cpu
def directions(grid: Grid) -> Tensor:
    """Return h·e₀ for every element, `(N, d)`: e₀ is the first axis; on a quotient the axis that its points are."""
    group = grid.group
    if group.quotient_of is not None:
        return group.act(grid.elements, group.identity(dtype=torch.float64))
    return group.matrix(grid.elements)[..., 0]
