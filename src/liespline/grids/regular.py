"""Grids with a formula: uniform on a group, a lattice on its algebra, a lattice or disc in R^d."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ..groups import SO2, SO3, Group, Scale, Sphere, Translation, Trivial
from .grid import Grid, counts, on_cpu, whole


@on_cpu
def uniform(group: Group, n: int, *, spacing: float | None = None) -> Grid:
    """Return n equidistant elements that cover the group, or start at its identity where it has no end.

    SO(2): i·2π/n. Scale: e^{(i−1)·spacing}, spacing being the step in ln s. SO(3): the rotation groups of the
    tetrahedron, octahedron and icosahedron (n = 12, 24, 60). Sphere: the vertices of the Platonic solids
    (n = 4, 6, 8, 12, 20). Trivial: its one element. Translation: see `lattice`.
    """
    whole("uniform", "n", n)
    if (spacing is None) == isinstance(group, Scale):
        given = "no spacing" if spacing is None else f"spacing = {spacing}"
        need = "needs the step in ln s, for instance spacing=0.5*math.log(2)" if spacing is None else "takes none"
        raise ValueError(f"uniform: {given} for {group!r}, which {need}")
    if isinstance(group, SO2):
        step = 2 * math.pi / n
        return Grid(group, step * _count(n).unsqueeze(-1), _constant(n, step), step)
    if isinstance(group, Scale):
        step = positive("uniform", spacing)
        return Grid(group, (step * _count(n)).exp().unsqueeze(-1), _constant(n, step), step)
    if isinstance(group, Trivial) and n == 1:
        return Grid(group, torch.zeros(1, 0), torch.ones(1), 1.0)
    if isinstance(group, SO3) and n in (12, 24, 60):
        return _even(group, polyhedral(n), 8 * math.pi**2)
    if isinstance(group, Sphere) and n in _SOLIDS:
        order, vertex = _SOLIDS[n]
        orbit = polyhedral(order) @ torch.tensor(vertex, dtype=torch.float64)
        return _even(group, _distinct(orbit / orbit.norm(dim=-1, keepdim=True)), 4 * math.pi)
    known = {
        "SO3": "12, 24 or 60 (or repulsion for any n)",
        "Sphere": "4, 6, 8, 12 or 20 (or repulsion for any n)",
        "Trivial": "1",
        "Translation": "lattice(d, n) instead",
    }
    right = known.get(type(group).__name__, "local(group, n, spacing) instead, or a Grid of your own")
    raise ValueError(f"uniform: n = {n} for {group!r}; there is {right}")


@on_cpu
def local(group: Group, n: int | Sequence[int], spacing: float) -> Grid:
    """Return Exp of the n lattice points of the algebra nearest 0: centres of localised kernels, for any group.

    The lattice is spacing·Z^dim for odd n and its half-step shift for even n, so the centres always lie evenly about
    the identity and n counts whole shells (1, 3, 5, … on a one-dimensional group, 1, 7, 19, 27 on SO(3)); a sequence
    of dim numbers asks for a box instead. Weights carry the Haar density.
    """
    step = positive("local", spacing)
    box = isinstance(n, Sequence)
    a = step * (_box(counts("local", n, group.dim)) if box else _shells(group.dim, whole("local", "n", n)))
    return Grid(group, group.exp(a), step**group.dim * group.haar_density(a), step)


@on_cpu
def lattice(space_dim: int, n: int | Sequence[int], *, spacing: float = 1.0) -> Grid:
    """Return the n × … × n lattice of R^d centred on the origin; for even n it has no point there."""
    group = Translation(space_dim)
    points = positive("lattice", spacing) * _box(counts("lattice", n, space_dim))
    return Grid(group, points, _constant(len(points), spacing**space_dim), spacing)


@on_cpu
def disc(n: int | Sequence[int], space_dim: int = 2, *, spacing: float = 1.0) -> Grid:
    """Return the lattice without its corners: 9 of 3×3 points, 21 of 5×5, 37 of 7×7 (app. D uses the 21).

    A point stays if it lies within the radius r of the disc, r² = ((n − 1)/2)² + 1.
    """
    group = Translation(space_dim)
    sizes = counts("disc", n, space_dim)
    points = _box(sizes)
    inside = (points.square() / (((torch.tensor(sizes, dtype=torch.float64) - 1) / 2) ** 2 + 1)).sum(-1) <= 1 + 1e-9
    points = positive("disc", spacing) * points[inside]
    return Grid(group, points, _constant(len(points), spacing**space_dim), spacing)


@on_cpu
def polyhedral(order: int) -> Tensor:
    """Return the rotation group of the tetrahedron (12), octahedron (24) or icosahedron (60), identity first."""
    if order not in (12, 24, 60):
        raise ValueError(f"polyhedral: order = {order!r}, must be 12, 24 or 60")
    golden = (1 + math.sqrt(5)) / 2
    third = 2 * math.pi / 3
    generators = {
        12: [_turn((1, 1, 1), third), _turn((0, 0, 1), math.pi)],
        24: [_turn((1, 1, 1), third), _turn((0, 0, 1), math.pi / 2)],
        60: [_turn((1, 1, 1), third), _turn((0, 1, golden), 2 * math.pi / 5)],
    }[order]
    members = torch.eye(3, dtype=torch.float64).unsqueeze(0)
    while len(members) < order:
        members = _distinct(torch.cat([members, *(members @ g for g in generators)]))
    if order < 60:  # signed permutation matrices: drop the rounding, so that lattices map to themselves exactly
        members = members.round()
    return members


# Number of vertices: the rotation group that carries one vertex to all of them, and that vertex.
_SOLIDS = {
    4: (12, (1.0, 1.0, 1.0)),
    6: (24, (0.0, 0.0, 1.0)),
    8: (24, (1.0, 1.0, 1.0)),
    12: (60, (0.0, 1.0, (1 + math.sqrt(5)) / 2)),
    20: (60, (1.0, 1.0, 1.0)),
}


def positive(where: str, spacing: float | None) -> float:
    """Return spacing, or say that it has to be a positive number."""
    if spacing is None or not 0 < spacing < float("inf"):
        raise ValueError(f"{where}: spacing = {spacing}, must be a positive number")
    return float(spacing)


def _even(group: Group, elements: Tensor, volume: float) -> Grid:
    n = len(elements)
    distance = group.offset(elements[:1], elements[1:]).norm(dim=-1)  # every element sees the same distances
    return Grid(group, elements, _constant(n, volume / n), float(distance.min()))


def _constant(n: int, value: float) -> Tensor:
    return torch.full((n,), value, dtype=torch.float64)


def _count(n: int) -> Tensor:
    return torch.arange(n, dtype=torch.float64)


def _box(sizes: tuple[int, ...]) -> Tensor:
    axes = [_count(n) - (n - 1) / 2 for n in sizes]
    return torch.cartesian_prod(*axes).reshape(-1, len(sizes)) if axes else torch.zeros(1, 0, dtype=torch.float64)


def _shells(dim: int, n: int) -> Tensor:
    side = next(m for m in itertools.count(1 + (n + 1) % 2, 2) if m**dim >= n or dim == 0)
    points = _box((side + 2 * (dim > 1),) * dim)  # one more ring than the box: its face centres are nearer than corners
    order = points.square().sum(-1).argsort(stable=True)
    radii = points[order].square().sum(-1)
    if n > len(points) or (n < len(points) and radii[n - 1] == radii[n]):
        ends = [int(i) + 1 for i in (radii.diff() > 0).nonzero()] + [len(points)]
        below, above = [e for e in ends if e < n][-1:], [e for e in ends if e > n][:1]
        right = " or ".join(map(str, below + above))
        raise ValueError(f"local: n = {n} cuts a shell of the lattice in half; with dimension {dim} take {right}")
    chosen, _ = order[:n].sort()
    return points[chosen]


def _turn(axis: tuple[float, float, float], angle: float) -> Tensor:
    direction = torch.tensor(axis, dtype=torch.float64)
    return SO3().exp(angle * direction / direction.norm())


def _distinct(elements: Tensor) -> Tensor:
    """Return the elements without repetitions, in order of first appearance."""
    flat = elements.flatten(1)
    close = (flat.unsqueeze(1) - flat).abs().amax(-1) < 1e-6
    first = close.to(torch.uint8).argmax(1) == torch.arange(len(flat))
    return elements[first]
