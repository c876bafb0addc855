"""The kinds of kernel on H that the paper compares, as choices of a spline basis (section 3.3, app. D)."""

from __future__ import annotations

from ..grids import Grid, local, repulsion, uniform
from ..groups import SO2, SO3, Scale
from ..splines import SplineBasis

KERNELS = ("dense", "local", "atrous", "deformable")


def h_basis(grid: Grid, kernel: str, n_k: int | None = None, *, degree: int = 3) -> SplineBasis:
    """Return n_k splines on H of a kind: by default one an element, or the nearest neighbours for local kernels.

    dense: spread over the group, as wide as they lie apart; local: next to the identity, one step of the grid apart;
    atrous: spread over the group but only as wide as one step; deformable: local, with centres that are learned.
    """
    group = grid.group
    if kernel not in KERNELS:
        raise ValueError(f"kernel = {kernel!r}, must be one of {', '.join(KERNELS)}")
    if len(grid) == 1 and n_k in (None, 1):
        return SplineBasis(grid, degree=degree) if group.dim == 0 else SplineBasis(local(group, 1, 1.0), degree=degree)
    if kernel in ("local", "deformable"):
        centres = local(group, 2 * group.dim + 1 if n_k is None else n_k, grid.spacing)
        return SplineBasis(centres, degree=degree, trainable=kernel == "deformable")
    scale = grid.spacing if kernel == "atrous" else None
    return SplineBasis(_spread(grid, len(grid) if n_k is None else n_k), scale=scale, degree=degree)


def _spread(grid: Grid, n: int) -> Grid:
    """Return n elements that cover what the grid covers."""
    group = grid.group
    if n == len(grid):
        return grid
    if isinstance(group, SO2) or (isinstance(group, SO3) and n in (12, 24, 60)):
        return uniform(group, n)
    if isinstance(group, Scale) and n < len(grid):
        return uniform(group, n, spacing=grid.steps[0] * (len(grid) - 1) / max(n - 1, 1))
    if isinstance(group, SO3):
        return repulsion(group, n)
    raise ValueError(f"n_k = {n} splines cannot be spread over {grid!r}; leave n_k out or use a local kernel")
