"""Every group, number of space dimensions and kind of kernel, in one table that the layers' tests share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

import liespline as ls
from liespline import Grid, SplineBasis
from own_group import Triangular

KINDS = ("dense", "local", "atrous", "non-uniform", "deformable")


@dataclass(frozen=True)
class Case:
    """One grid and one kind of kernel on it."""

    name: str
    grid: Grid
    kind: str

    @property
    def d(self) -> int:
        """Number of space axes."""
        return self.grid.group.space_dim

    def h_basis(self) -> SplineBasis:
        """A fresh basis on H of this kind."""
        group, step, steps = self.grid.group, self.grid.spacing, self.grid.steps
        if group.dim == 0:
            return SplineBasis(self.grid)
        match self.kind:
            case "dense":
                return SplineBasis(self.grid)
            case "local":
                return SplineBasis(ls.local(group, 2 * group.dim + 1, step), degree=2)
            case "atrous":
                return SplineBasis(Grid(group, self.grid.elements[::2], self.grid.weights[::2], step), degree=1)
        moves = 0.2 * torch.tensor(steps, dtype=torch.float64) * _noise(len(self.grid), group.dim)
        centres = group.product(self.grid.elements, group.exp(moves))
        wider = tuple(1.3 * step for step in steps)
        return SplineBasis(
            Grid(group, centres, self.grid.weights, step), scale=wider, trainable=self.kind == "deformable"
        )

    def x_basis(self) -> SplineBasis:
        """A fresh spatial basis of this kind."""
        d = self.d
        match self.kind:
            case "dense" | "local":
                return SplineBasis(ls.disc(3, d))
            case "atrous":
                return SplineBasis(ls.lattice(d, 2, spacing=2.0), scale=1.0, degree=2)
        lattice = ls.lattice(d, 2)
        moved = Grid(lattice.group, lattice.elements + 0.3 * _noise(len(lattice), d), lattice.weights, 1.0)
        return SplineBasis(moved, degree=3, trainable=self.kind == "deformable")


def _noise(n: int, dim: int) -> torch.Tensor:
    return torch.randn(n, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(n + 17 * dim))


def _triangular() -> Grid:
    return ls.local(Triangular(), 7, 0.35)


def _mirrored() -> Grid:
    """Three rotations of space and their negatives."""
    turns = ls.repulsion(ls.SO3(), 3)
    return Grid(ls.O3(), torch.cat((turns.elements, -turns.elements)), turns.weights.repeat(2), turns.spacing)


SL2 = [[[1.0, 0], [0, -1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]]
_SIM3 = ls.Product(ls.SO3(), ls.Scale(3))
_FEW = _SIM3.exp(0.4 * _noise(4, 4))

GRIDS: dict[str, Callable[[], Grid]] = {
    "Trivial(1)": lambda: ls.uniform(ls.Trivial(1), 1),
    "Trivial(2)": lambda: ls.uniform(ls.Trivial(2), 1),
    "Trivial(3)": lambda: ls.uniform(ls.Trivial(3), 1),
    "SO2": lambda: ls.uniform(ls.SO2(), 5),
    "Scale(1)": lambda: ls.uniform(ls.Scale(1), 3, spacing=0.5 * math.log(2)),
    "Scale(2)": lambda: ls.uniform(ls.Scale(2), 3, spacing=0.5 * math.log(2)),
    "Scale(3)": lambda: ls.uniform(ls.Scale(3), 2, spacing=0.3),
    "SO3": lambda: ls.repulsion(ls.SO3(), 5),
    "Sphere": lambda: ls.repulsion(ls.Sphere(), 4),
    "triangular": _triangular,
    "O2": lambda: ls.uniform(ls.O2(), 6),
    "O3": _mirrored,
    "SIM2": lambda: ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (3, 2), spacing=(None, 0.4)),
    "O2 × Scale": lambda: ls.uniform(ls.Product(ls.O2(), ls.Scale(2)), (4, 2), spacing=(None, 0.4)),
    "SIM3": lambda: Grid(_SIM3, _FEW, torch.arange(1.0, 5), (0.9, 0.9, 0.9, 0.3)),
    "GL2": lambda: ls.local(ls.GL2(), 9, (0.2, 0.3, 0.3, 0.7)),
    "SL2": lambda: ls.local(ls.MatrixGroup(SL2), 7, 0.35),
}
CASES = [Case(name, grid(), kind) for name, grid in GRIDS.items() for kind in KINDS]
