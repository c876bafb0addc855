"""The real irreducible representations of SO(2) and SO(3), as matrices of group elements."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from ..grids import Grid
from ..grids.grid import on_cpu
from ..groups import SO2, SO3


def wigner(degree: int, h: Tensor) -> Tensor:
    """Return D^l(h) of rotations `(*batch, 3, 3)`, `(*batch, 2l+1, 2l+1)` in float64: Y^l(h r) = D^l(h) Y^l(r).

    Y^l are the real spherical harmonics in the order and signs of e3nn, so D¹(h) = h.
    """
    rotation = SO3().log(h.double())
    return torch.linalg.matrix_exp(torch.einsum("...i,imn->...mn", rotation, _generators(degree)))


@lru_cache(maxsize=32)
@on_cpu
def _generators(degree: int) -> Tensor:
    """The derivatives of D^l by rotations about the three axes, (3, 2l+1, 2l+1), from the ladder operators."""
    m = torch.arange(-degree, degree + 1, dtype=torch.float64)
    raising = torch.diag((degree * (degree + 1) - m[:-1] * (m[:-1] + 1)).sqrt(), -1).to(torch.complex128)
    x, y, z = (raising + raising.mT) / 2, (raising - raising.mT) / 2j, torch.diag(m).to(torch.complex128)
    # From complex harmonics to real ones: ((−1)^k Y_k + Y_−k)/√2 in row k, ((−1)^k Y_k − Y_−k)/(i√2) in row −k.
    cosine, sine = torch.zeros(2, 2 * degree + 1, 2 * degree + 1, dtype=torch.float64)
    cosine[degree, degree] = 1
    for k in range(1, degree + 1):
        up, down = degree + k, degree - k
        cosine[up, up], cosine[up, down] = (-1) ** k / math.sqrt(2), 1 / math.sqrt(2)
        sine[down, up], sine[down, down] = -cosine[up, up], cosine[up, down]
    real = torch.complex(cosine, sine)
    # e3nn's polar axis is the second one: its axes are the y, z and x of the harmonics above.
    return torch.stack([(real @ (1j * axis.conj()) @ real.conj().mT).real for axis in (y, z, x)])


@on_cpu
def irreps(grid: Grid, l_max: int) -> list[Tensor]:
    """Return for each l ≤ l_max the functions D^l on a grid that make up copies of that irrep, `(copies, 2l+1, N)`.

    On SO(3) copy n is the column n of D^l. On SO(2), where irreps have dimension 2, there is one: (cos lθ, sin lθ).
    """
    if isinstance(grid.group, SO3):
        return [wigner(degree, grid.elements).permute(2, 1, 0) for degree in range(l_max + 1)]
    if isinstance(grid.group, SO2):
        angle = grid.elements[:, 0]
        waves = [torch.stack([(k * angle).cos(), (k * angle).sin()]).unsqueeze(0) for k in range(1, l_max + 1)]
        return [torch.ones(1, 1, len(grid), dtype=torch.float64), *waves]
    raise ValueError(f"irreps of {grid.group!r} are not known here, only those of SO2() and SO3()")
