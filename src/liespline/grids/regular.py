"""Grids with a formula: uniform on a group, a lattice on its algebra, a lattice or disc in R^d."""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from .._check import per_axis, sizes, whole
from ..groups import Group, Translation
from ..groups.even import constant
from .grid import Grid, on_cpu, steps


@on_cpu
def uniform(group: Group, n: int | Sequence[int], *, spacing: float | Sequence[float | None] | None = None) -> Grid:
    """Return n equidistant elements that cover the group, or start at its identity where it has no end.

    SO(2): i·2π/n. O(2): n/2 rotations and as many reflections. Scale: e^{i·spacing}, spacing being the step in ln s.
    SO(3): the rotation groups of the tetrahedron, octahedron and icosahedron (n = 12, 24, 60). O(3): these with their
    negatives (n = 24, 48, 120). Sphere: the vertices of the Platonic solids (n = 4, 6, 8, 12, 20). Trivial: its one
    element. Products take tuples, one entry per factor: `uniform(Product(SO2(), Scale(2)), (8, 3),
    spacing=(None, 0.5*math.log(2)))`. A group of your own joins by its method `uniform_elements`.
    """
    if not isinstance(group, Group):
        raise ValueError(f"uniform: group = {group!r}, must be a group such as SO2()")
    return Grid(group, *group.uniform_elements(n, spacing))


@on_cpu
def local(group: Group, n: int | Sequence[int], spacing: float | Sequence[float]) -> Grid:
    """Return Exp of the n lattice points of the algebra nearest 0: centres of localised kernels, for any group.

    The lattice is spacing·Z^dim for odd n and its half-step shift for even n, so the centres always lie evenly about
    the identity and n counts whole shells (1, 3, 5, … on a one-dimensional group, 1, 7, 19, 27 on SO(3)); a sequence
    of dim numbers asks for a box instead, and a spacing of dim numbers for a step per axis. All of them lie on the
    component of the identity. Weights carry the Haar density.
    """
    step = steps("local", spacing, group.dim)
    scale = torch.tensor(per_axis("local", "spacing", step, group.dim), dtype=torch.float64)
    in_box = isinstance(n, Sequence)
    a = scale * (box(sizes("local", "n", n, group.dim)) if in_box else _shells(group.dim, whole("local", "n", n)))
    return Grid(group, group.exp(a), scale.prod() * group.haar_density(a), step)


@on_cpu
def lattice(space_dim: int, n: int | Sequence[int], *, spacing: float | Sequence[float] = 1.0) -> Grid:
    """Return the n × … × n lattice of R^d centred on the origin; for even n it has no point there."""
    group = Translation(space_dim)
    step = steps("lattice", spacing, space_dim)
    scale = torch.tensor(per_axis("lattice", "spacing", step, space_dim), dtype=torch.float64)
    points = scale * box(sizes("lattice", "n", n, space_dim))
    return Grid(group, points, constant(len(points), float(scale.prod())), step)


@on_cpu
def disc(n: int | Sequence[int], space_dim: int = 2, *, spacing: float = 1.0) -> Grid:
    """Return the lattice without its corners: 9 of 3×3 points, 21 of 5×5, 37 of 7×7 (app. D uses the 21).

    A point stays if it lies within the radius r of the disc, r² = ((n − 1)/2)² + 1.
    """
    group = Translation(space_dim)
    counts = sizes("disc", "n", n, space_dim)
    points = box(counts)
    inside = (points.square() / (((torch.tensor(counts, dtype=torch.float64) - 1) / 2) ** 2 + 1)).sum(-1) <= 1 + 1e-9
    steps("disc", spacing, space_dim)  # refuses what is no positive number
    points = spacing * points[inside]
    return Grid(group, points, constant(len(points), spacing**space_dim), spacing)


def centred(space: Sequence[int], *, dtype: torch.dtype = torch.float64, device: torch.device | str = "cpu") -> Tensor:
    """Return where samples lie, counted from their centre: `(*space, d)`."""
    axes = [torch.arange(n, dtype=dtype, device=device) - (n - 1) / 2 for n in space]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1) if axes else torch.zeros(0, dtype=dtype, device=device)


def box(space: Sequence[int]) -> Tensor:
    """Return the same in one list, `(N, d)`: where there is no space, one point of no coordinates."""
    return centred(space).reshape(math.prod(space), len(space))


def _shells(dim: int, n: int) -> Tensor:
    side = next(m for m in itertools.count(1 + (n + 1) % 2, 2) if m**dim >= n or dim == 0)
    points = box((side + 2 * (dim > 1),) * dim)  # one more ring than the box: its face centres are nearer than corners
    order = points.square().sum(-1).argsort(stable=True)
    radii = points[order].square().sum(-1)
    if n > len(points) or (n < len(points) and radii[n - 1] == radii[n]):
        ends = [int(i) + 1 for i in (radii.diff() > 0).nonzero()] + [len(points)]
        below, above = [e for e in ends if e < n][-1:], [e for e in ends if e > n][:1]
        right = " or ".join(map(str, below + above))
        raise ValueError(f"local: n = {n} cuts a shell of the lattice in half; with dimension {dim} take {right}")
    chosen, _ = order[:n].sort()
    return points[chosen]
