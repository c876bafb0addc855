"""How the elements of a grid move vectors and tensors, which are read by lifting and read off H."""

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


@on_cpu
def frames(grid: Grid, in_type: str) -> Tensor:
    """Return what v ↦ h⁻¹v, or T ↦ h⁻¹T h⁻ᵀ, makes of each component: `(A, 1, q, q)`, at [h, 0, before, after].

    q is d for vectors and d² for tensors, row by row; laid out as `group_samples`, so that lifting is a correlation.
    """
    back = torch.linalg.inv(grid.group.matrix(grid.elements))
    if in_type == "tensor":
        back = torch.einsum("aij,akl->aikjl", back, back).flatten(3).flatten(1, 2)
    return back.mT.unsqueeze(1)
