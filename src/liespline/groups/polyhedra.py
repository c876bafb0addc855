"""The rotation groups of the Platonic solids, and the solids' vertices."""

import math

import torch
from torch import Tensor

_GOLDEN = (1 + math.sqrt(5)) / 2
_THIRD = ((1.0, 1.0, 1.0), 2 * math.pi / 3)

# Number of elements: two turns (axis, angle) that generate the group.
_GENERATORS = {
    12: (_THIRD, ((0.0, 0.0, 1.0), math.pi)),
    24: (_THIRD, ((0.0, 0.0, 1.0), math.pi / 2)),
    60: (_THIRD, ((0.0, 1.0, _GOLDEN), 2 * math.pi / 5)),
}

# Number of vertices: the rotation group that carries one vertex to all of them, and that vertex.
SOLIDS = {
    4: (12, (1.0, 1.0, 1.0)),
    6: (24, (0.0, 0.0, 1.0)),
    8: (24, (1.0, 1.0, 1.0)),
    12: (60, (0.0, 1.0, _GOLDEN)),
    20: (60, (1.0, 1.0, 1.0)),
}


def polyhedral(order: int) -> Tensor:
    """Return the rotation group of the tetrahedron (12), octahedron (24) or icosahedron (60), identity first."""
    if order not in _GENERATORS:
        raise ValueError(f"polyhedral: order = {order!r}, must be 12, 24 or 60")
    with torch.device("cpu"):
        members = torch.eye(3, dtype=torch.float64).unsqueeze(0)
        turns = [_turn(*generator) for generator in _GENERATORS[order]]
        while len(members) < order:
            members = _distinct(torch.cat([members, *(members @ g for g in turns)]))
    # Signed permutation matrices: drop the rounding, so that lattices map to themselves exactly.
    return members.round() if order < 60 else members


def vertices(n: int) -> Tensor:
    """Return the n corners of a Platonic solid on the unit sphere, `(n, 3)`."""
    order, vertex = SOLIDS[n]
    corners = polyhedral(order) @ torch.tensor(vertex, dtype=torch.float64, device="cpu")
    return _distinct(corners / corners.norm(dim=-1, keepdim=True))


def _turn(axis: tuple[float, float, float], angle: float) -> Tensor:
    """Return the turn about an axis: R = I + sin θ [u] + (1 − cos θ) [u]²."""
    u = torch.tensor(axis, dtype=torch.float64)
    x, y, z = (u / u.norm()).tolist()
    cross = torch.tensor([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=torch.float64)
    return torch.eye(3, dtype=torch.float64) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross


def _distinct(elements: Tensor) -> Tensor:
    """Return the elements without repetitions, in order of first appearance."""
    flat = elements.flatten(1)
    close = (flat.unsqueeze(1) - flat).abs().amax(-1) < 1e-6
    first = close.to(torch.uint8).argmax(1) == torch.arange(len(flat), device=flat.device)
    return elements[first]
