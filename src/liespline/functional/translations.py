"""Functions on a finite group fall into small blocks, which whatever commutes with translations leaves apart."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from ..grids import Grid
from ..grids.grid import on_cpu, same

_EQUAL = 1e-8  # of eigenvalues, which are about 1 and random


@lru_cache(maxsize=64)
@on_cpu
def blocks(grid: Grid) -> tuple[Tensor, tuple[int, ...]] | None:
    """Return orthonormal columns (N, N) and the sizes of the blocks into which they cut functions on the grid.

    They are the eigenspaces of one random symmetric sum of the left translations (L_g F)(h) = F(g⁻¹h), and as small as
    any that all of them respect: d_ρ of size d_ρ for each irrep ρ. None where the elements are no group.
    """
    elements, n = grid.elements, len(grid)
    if grid.group.quotient_of is not None:
        return None
    products = grid.group.product(elements.unsqueeze(1), elements.unsqueeze(0))
    found = same(grid, products.flatten(0, 1)).unflatten(0, (n, n))  # (g, h, gh)
    if not (found.sum(-1) == 1).all():
        return None
    drawn = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    total = torch.einsum("g,ghi->hi", drawn, found.to(drawn)) / n**0.5
    values, waves = torch.linalg.eigh(total + total.T)
    new = torch.cat([torch.tensor([True]), values.diff() > _EQUAL])
    sizes = new.nonzero().flatten().diff(append=torch.tensor([n]))
    own = sizes[new.cumsum(0) - 1]  # of each column's block
    return waves[:, torch.argsort(own, stable=True)].contiguous(), tuple(sorted(sizes.tolist()))
