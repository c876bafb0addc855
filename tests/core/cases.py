"""Every group and number of space dimensions in one table that the layers' tests share, and learned kernels on it."""

import math

import pytest
import torch

import liespline as ls
from liespline import Grid, SplineBasis
from own_group import SL2, Triangular


def _noise(n: int, dim: int) -> torch.Tensor:
    return torch.randn(n, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(n + 17 * dim))


def _mirrored() -> Grid:
    """Three rotations of space and their negatives."""
    turns = ls.repulsion(ls.SO3(), 3)
    return Grid(ls.O3(), torch.cat((turns.elements, -turns.elements)), turns.weights.repeat(2), turns.spacing)


_SIM3 = ls.Product(ls.SO3(), ls.Scale(3))
_FEW = _SIM3.exp(_noise(4, 4) * torch.tensor([0.4, 0.4, 0.4, 0.1]))

GRIDS: dict[str, Grid] = {
    "Trivial(1)": ls.uniform(ls.Trivial(1), 1),
    "Trivial(2)": ls.uniform(ls.Trivial(2), 1),
    "Trivial(3)": ls.uniform(ls.Trivial(3), 1),
    "SO2": ls.uniform(ls.SO2(), 5),
    "Scale(1)": ls.uniform(ls.Scale(1), 3, spacing=0.5 * math.log(2)),
    "Scale(2)": ls.uniform(ls.Scale(2), 3, spacing=0.5 * math.log(2)),
    "Scale(3)": ls.uniform(ls.Scale(3), 2, spacing=0.3),
    "SO3": ls.repulsion(ls.SO3(), 5),
    "Sphere": ls.repulsion(ls.Sphere(), 4),
    "triangular": ls.local(Triangular(), 7, 0.35),
    "O2": ls.uniform(ls.O2(), 6),
    "O3": _mirrored(),
    "SIM2": ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (3, 2), spacing=(None, 0.4)),
    "O2 × Scale": ls.uniform(ls.Product(ls.O2(), ls.Scale(2)), (4, 2), spacing=(None, 0.4)),
    "SIM3": Grid(_SIM3, _FEW, torch.arange(1.0, 5), (0.9, 0.9, 0.9, 0.3)),
    "GL2": ls.local(ls.GL2(), 9, (0.2, 0.3, 0.3, 0.7)),
    "SL2": ls.local(SL2, 7, 0.35),
}
every_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


def off_grid(grid: Grid, *, trainable: bool = True) -> dict[str, SplineBasis]:
    """Bases whose centres lie off the elements and samples."""
    group, lattice = grid.group, ls.lattice(grid.group.space_dim, 2)
    moved = lattice.elements + 0.3 * _noise(len(lattice), group.space_dim)
    x_basis = SplineBasis(Grid(lattice.group, moved, lattice.weights, 1.0), degree=3, trainable=trainable)
    if group.dim == 0:
        return {"x_basis": x_basis, "h_basis": SplineBasis(grid)}
    moves = 0.2 * torch.tensor(grid.steps, dtype=torch.float64) * _noise(len(grid), group.dim)
    centres = Grid(group, group.product(grid.elements, group.exp(moves)), grid.weights, grid.spacing)
    wider = tuple(1.3 * step for step in grid.steps)
    return {"x_basis": x_basis, "h_basis": SplineBasis(centres, scale=wider, trainable=trainable)}
