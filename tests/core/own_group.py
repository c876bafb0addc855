"""A user's own group, the groups and grids that tests run over, and a way to plant a fault in a group."""

import math

import pytest
import torch
from torch import Tensor

import liespline as ls
from liespline import (
    GL2,
    O2,
    O3,
    SO2,
    SO3,
    Grid,
    Group,
    MatrixGroup,
    Product,
    Scale,
    Sphere,
    SplineBasis,
    Translation,
    Trivial,
)
from liespline.groups import Semidirect


class Triangular(Group):
    """Upper-triangular 2×2 matrices with positive diagonal acting on R²: neither abelian nor compact.

    The algebra vector (a, b, c) stands for [[a, c], [0, b]].
    """

    dim = 3
    space_dim = 2
    element_shape = (2, 2)

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g @ h

    def inverse(self, h: Tensor) -> Tensor:
        p, q, r = h[..., 0, 0], h[..., 0, 1], h[..., 1, 1]
        return _matrix(1 / p, -q / (p * r), 1 / r)

    def exp(self, a: Tensor) -> Tensor:
        first, last = a[..., 0].exp(), a[..., 1].exp()
        return _matrix(first, a[..., 2] * _mean(a[..., 0], a[..., 1]), last)

    def log(self, h: Tensor) -> Tensor:
        first, last = h[..., 0, 0].log(), h[..., 1, 1].log()
        return torch.stack((first, last, h[..., 0, 1] / _mean(first, last)), -1)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return (h @ x.unsqueeze(-1)).squeeze(-1)


def _matrix(p: Tensor, q: Tensor, r: Tensor) -> Tensor:
    return torch.stack((p, q, torch.zeros_like(p), r), -1).unflatten(-1, (2, 2))


def _mean(a: Tensor, b: Tensor) -> Tensor:
    """Return (e^a − e^b) / (a − b), by its series where a and b are close."""
    u = (a - b) / 2
    near = u.abs() < 1e-2
    away = torch.where(near, 1.0, u)
    return ((a + b) / 2).exp() * torch.where(near, 1 + u**2 / 6 + u**4 / 120, away.sinh() / away)


J = [[0.0, -1], [1, 0]]
CROSS = [[[0.0, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 0, 0], [-1, 0, 0]], [[0, -1, 0], [1, 0, 0], [0, 0, 0]]]
AROUND = [CROSS[2], [[0.0, 0, 0], [0, 0, 0], [0, 0, 1]]]
"""Generators of rotations of the plane, of space, and of those about an axis with scalings along it."""

GROUPS = [Trivial(2), Translation(3), SO2(), Scale(1), Scale(2), SO3(), Triangular()]
SPACES = [*GROUPS, Sphere()]
SIM2 = Product(SO2(), Scale(2))
SHEARS = MatrixGroup([[[0, 1], [0, 0]]])
STRETCHES = MatrixGroup([[[1, 0], [0, 0]], [[0, 0], [0, 1]]])
SL2 = MatrixGroup([[[1, 0], [0, -1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]])
HEISENBERG = MatrixGroup(
    [[[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 1], [0, 0, 0], [0, 0, 0]]]
)
UPPER = MatrixGroup(
    [[[float((i, j) == (p, q)) for j in range(3)] for i in range(3)] for p in range(3) for q in range(p, 3)]
)
BUILT = [
    O2(),
    O3(),
    SIM2,
    Product(O2(), Scale(2)),
    Product(SO2(), SO2(), Scale(2)),
    GL2(),
    SHEARS,
    STRETCHES,
    SL2,
    HEISENBERG,
    UPPER,
    Semidirect(SO2()),
    Semidirect(O2()),
    Semidirect(SIM2),
    Semidirect(SO3()),
    Semidirect(GL2()),
]
"""Groups with several components, made of others, of generators, or by a chart."""
DTYPES = [torch.float64, torch.float32]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}
REACH = {SO2: math.pi, SO3: math.pi, Sphere: math.pi, O2: math.pi, O3: math.pi, MatrixGroup: 0.9, GL2: 1.0}
"""How long algebra vectors get: a compact group is covered whole, products of three matrices have a logarithm."""


def name(value: object) -> str | None:
    """Return a short test id of a group or dtype."""
    return repr(value).removeprefix("torch.") if isinstance(value, Group | torch.dtype) else None


def vectors(group: Group, n: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    """Return n algebra vectors of every length up to the reach of the group."""
    return ball(group.dim, n, REACH.get(type(group), 2.0), seed).to(dtype)


def points(group: Group, n: int, dtype: torch.dtype = torch.float64, seed: int = 1) -> Tensor:
    """Return n points of R^d."""
    return ball(group.space_dim, n, 2.0, seed).to(dtype)


def ball(dim: int, n: int, radius: float, seed: int = 0) -> Tensor:
    """Return n vectors in random directions, their lengths uniform in [0, radius)."""
    generator = torch.Generator().manual_seed(seed)
    direction = torch.randn(n, dim, dtype=torch.float64, generator=generator)
    length = radius * torch.rand(n, 1, dtype=torch.float64, generator=generator)
    return length * direction / direction.norm(dim=-1, keepdim=True).clamp_min(1e-300)


def apart(left: Tensor, right: Tensor) -> float:
    """Return the largest difference, relative to the size of each entry's own vector where that is over 1."""
    if left.numel() == 0:
        return 0.0
    size = torch.maximum(left.abs(), right.abs()).amax(-1, keepdim=True).clamp_min(1)
    return float(((left - right).abs() / size).max().detach())


def planted(group: Group, **faults: object) -> Group:
    """Return the group with some of its methods or attributes replaced: a fault that a check has to find."""
    broken = type(f"Broken{type(group).__name__}", (type(group),), faults)
    copy = broken.__new__(broken)
    vars(copy).update(vars(group))
    return copy


def _noise(n: int, dim: int) -> Tensor:
    return torch.randn(n, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(n + 17 * dim))


def _mirrored() -> Grid:
    """Three rotations of space and their negatives."""
    turns = ls.repulsion(SO3(), 3)
    return Grid(O3(), torch.cat((turns.elements, -turns.elements)), turns.weights.repeat(2), turns.spacing)


_SIM3 = Product(SO3(), Scale(3))
_FEW = _SIM3.exp(_noise(4, 4) * torch.tensor([0.4, 0.4, 0.4, 0.1]))

# Every group and number of space dimensions.
GRIDS: dict[str, Grid] = {
    "Trivial(1)": ls.uniform(Trivial(1), 1),
    "Trivial(2)": ls.uniform(Trivial(2), 1),
    "Trivial(3)": ls.uniform(Trivial(3), 1),
    "SO2": ls.uniform(SO2(), 5),
    "Scale(1)": ls.uniform(Scale(1), 3, spacing=0.5 * math.log(2)),
    "Scale(2)": ls.uniform(Scale(2), 3, spacing=0.5 * math.log(2)),
    "Scale(3)": ls.uniform(Scale(3), 2, spacing=0.3),
    "SO3": ls.repulsion(SO3(), 5),
    "Sphere": ls.repulsion(Sphere(), 4),
    "triangular": ls.local(Triangular(), 7, 0.35),
    "O2": ls.uniform(O2(), 6),
    "O3": _mirrored(),
    "SIM2": ls.uniform(Product(SO2(), Scale(2)), (3, 2), spacing=(None, 0.4)),
    "O2 × Scale": ls.uniform(Product(O2(), Scale(2)), (4, 2), spacing=(None, 0.4)),
    "SIM3": Grid(_SIM3, _FEW, torch.arange(1.0, 5), (0.9, 0.9, 0.9, 0.3)),
    "GL2": ls.local(GL2(), 9, (0.2, 0.3, 0.3, 0.7)),
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
