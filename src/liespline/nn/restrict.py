"""Feature maps on a group as feature maps on a subgroup, with more channels and nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor, nn

from .._torch import beside
from ..grids import Grid
from ..grids.grid import on_cpu, same
from . import arguments
from .shift import renew


class Restrict(nn.Module):
    """A feature map on H as one on a subgroup K, from where on a network may break the rest of the symmetry.

    H is the disjoint union of K r_i, and F′_{(c, i)}(x, k) = F_c(x, k r_i): `(B, C, |H|, *space)` becomes
    `(B, C · |H/K|, |K|, *space)`, channel c · |H/K| + i. Equivariant to K, exact, and without parameters.

    `subgrid` has the elements of K, on the group of `grid` or on one of its subgroups, such as SO(2) for O(2), or
    `Trivial` for all. `out_grid` has the same elements on the group of `grid`: build the layers behind on it.
    """

    index: Tensor

    def __init__(self, grid: Grid, subgrid: Grid) -> None:
        super().__init__()
        self.grid = arguments.grid("Restrict", "grid", grid)
        self.out_grid, index = cosets(grid, arguments.grid("Restrict", "subgrid", subgrid))
        self.factor = len(index)
        self._exact = index.flatten()
        like = torch.empty(0)  # where layers are made: perhaps on the meta device
        self.register_buffer("index", beside(self._exact, like).to(like.device, copy=True), persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Restrict:
        super()._apply(fn, recurse)
        renew(self.index, self._exact)
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Rearrange `(B, C, |H|, *space)` to `(B, C · |H/K|, |K|, *space)`."""
        if x.ndim < 3 or x.shape[2] != len(self.grid):
            raise ValueError(f"Restrict: x has shape {tuple(x.shape)}; expected (B, C, {len(self.grid)}, *space)")
        return x.index_select(2, self.index).unflatten(2, (self.factor, -1)).flatten(1, 2)

    def extra_repr(self) -> str:
        """Show both grids."""
        return f"{self.grid!r} to {self.out_grid!r}"


@lru_cache(maxsize=64)
@on_cpu
def cosets(grid: Grid, subgrid: Grid) -> tuple[Grid, Tensor]:
    """The subgrid on the group of the grid, and the numbers of the elements k r_i in the grid: `(|H/K|, |K|)`.

    The first coset is K itself where the grid has it, the others follow in the order of the grid.
    """
    group = grid.group
    if group.quotient_of is not None:
        raise ValueError(f"Restrict: {group!r} is a quotient, which has no subgroups; project to a function on space")
    elements = subgrid.elements if subgrid.group == group else _acting_alike(grid, subgrid)
    here = same(grid, group.identity(dtype=torch.float64).unsqueeze(0))[0]
    left, found = sorted(range(len(grid)), key=lambda number: not here[number]), []
    while left:
        places = same(grid, group.product(elements, grid.elements[left[0]]))  # (|K|, |H|)
        numbers = places.int().argmax(1).tolist()
        if not places.any(1).all() or len(set(numbers) & set(left)) < len(elements):
            raise ValueError(f"Restrict: {grid!r} is no union of cosets K r of subgrid = {subgrid!r}")
        left = [number for number in left if number not in numbers]
        found.append(numbers)
    if subgrid.group == group:
        return subgrid, torch.tensor(found)
    spacing = subgrid.spacing if subgrid.group.dim == group.dim else grid.spacing
    return Grid(group, elements, subgrid.weights, spacing), torch.tensor(found)


def _acting_alike(grid: Grid, subgrid: Grid) -> Tensor:
    """Those elements of the grid that act on space as the elements of the subgrid do, in their order."""
    own, wanted = (one.group.matrix(one.elements) for one in (grid, subgrid))
    if own.shape[1:] != wanted.shape[1:]:
        raise ValueError(f"Restrict: subgrid = {subgrid!r} acts on another space than {grid!r}")
    alike = (wanted.unsqueeze(1) - own).abs().flatten(2).amax(2) < 1e-6
    if not alike.any(1).all():
        raise ValueError(f"Restrict: subgrid = {subgrid!r} has elements that {grid!r} has not")
    return grid.elements[alike.int().argmax(1)]
