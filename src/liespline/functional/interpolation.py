"""Feature maps between the elements of a grid: trigonometric interpolation along the rotations in H."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from ..grids import Grid
from ..grids.grid import on_cpu, same
from ..ops.layout import Order, fields_first, fields_last, order_of


@lru_cache(maxsize=64)
@on_cpu
def interpolation(grid: Grid, times: int) -> Tensor:
    """Return the matrix `(times·N, N)` from values on a grid to values on `times` as many elements.

    Along h Exp(t a), with a the one axis of the algebra for which Exp(2π a) = e, n elements in equal steps determine a
    trigonometric polynomial of degree n/2, which is read in steps of 2π / (times·n). As left translations of the grid
    only permute such rows of elements, they commute with it. Raises ValueError for groups that have no such axis, or
    several, and for grids whose elements do not follow each other in equal steps along it.
    """
    rows = _rows(grid)
    n = rows.shape[1]
    fine, coarse = (torch.arange(count, dtype=torch.float64) / count for count in (times * n, n))
    angles = 2 * math.pi * (fine.unsqueeze(1) - coarse)
    along = torch.ones_like(angles)
    for k in range(1, n // 2 + 1):  # the highest of an even number has a cosine alone
        along += (1 if 2 * k == n else 2) * torch.cos(k * angles)
    matrix = torch.zeros(len(rows), times * n, len(grid), dtype=torch.float64)
    for row, block in zip(rows, matrix, strict=True):
        block[:, row] = along / n
    return matrix.flatten(0, 1)


def _rows(grid: Grid) -> Tensor:
    """Return the elements as rows h, h Exp(2π/n a), h Exp(2·2π/n a), …: indices `(N/n, n)`."""
    group = grid.group
    turns = 2 * math.pi * torch.eye(group.dim, dtype=torch.float64)
    identity = group.identity(dtype=torch.float64)
    closed = (
        [] if group.quotient_of else [a for a in turns if float(group.offset(group.exp(a), identity).norm()) < 1e-6]
    )
    if len(closed) != 1:
        raise ValueError(
            f"{grid!r}: interpolation needs a group with one axis of rotations, such as SO2(), O2() or a product with "
            f"scales; {group!r} has {len(closed) or 'none'}"
        )
    for n in range(len(grid), 1, -1):
        if len(grid) % n == 0:
            found = same(grid, group.product(grid.elements, group.exp(closed[0] / n)))
            if found.any(1).all():
                return _followed(found.int().argmax(1), n)
    raise ValueError(f"{grid!r}: interpolation needs rotations in equal steps, those of uniform(…) without max_angle")


def _followed(following: Tensor, n: int) -> Tensor:
    """Return the cycles of a permutation, all of n elements."""
    rows: list[list[int]] = []
    for start in range(len(following)):
        if not any(start in row for row in rows):
            row = [start]
            while len(row) < n:
                row.append(int(following[row[-1]]))
            rows.append(row)
    return torch.tensor(rows)


def over_h(matrix: Tensor, x: Tensor) -> Tensor:
    """Return a matrix `(M, N)` times the values over H, `(B, C, N, *space)` → `(B, C, M, *space)`, laid out like x."""
    matrix = matrix.to(x.dtype)
    if x.ndim == 3:
        return x @ matrix.T
    match order_of(x):
        case Order.FIELDS:  # as one product of all samples: a GPU takes far longer for a small one per sample
            each = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
            mixed = F.linear(fields_last(x).flatten(-2), torch.kron(matrix, each))
            return fields_first(mixed.unflatten(-1, (len(matrix), x.shape[1])))
        case Order.CHANNELS:
            last = x.movedim(1, -1)
            return (matrix @ last.flatten(2)).unflatten(2, last.shape[2:]).movedim(-1, 1)
        case _:
            return (matrix @ x.flatten(3)).unflatten(3, x.shape[3:])
