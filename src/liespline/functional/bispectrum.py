"""What is left of a function on C_n when it does not matter where it begins, and nothing less: its bispectrum."""

from __future__ import annotations

import torch
from torch import Tensor

from .._torch import full_precision, is_autocast, widened
from ..grids import Grid
from ..groups import SO2

SOFT = 0.01
"""The share of a feature's power below which a coefficient's phase counts less: there it is mostly noise."""
_TINY = 1e-12


def fourier_rows(grid: Grid) -> Tensor:
    """cos(kθ_j)/n and −sin(kθ_j)/n for k = 0 … ⌊n/2⌋ at the angles of a grid: `(2, ⌊n/2⌋ + 1, n)`."""
    angles = grid.elements[:, 0] if isinstance(grid.group, SO2) else torch.zeros(0)
    n = len(grid)
    k = torch.arange(n // 2 + 1, dtype=torch.float64).unsqueeze(1)
    sums = torch.exp(1j * torch.arange(1, n, dtype=torch.float64).unsqueeze(1) * angles).sum(-1)
    if not isinstance(grid.group, SO2) or not (sums.abs() < 1e-6 * n).all():
        raise ValueError(f'Project: "bispectrum" is for uniform(SO2(), n), whose grid is a group; grid = {grid!r}')
    return torch.stack(((k * angles).cos(), -(k * angles).sin())) / n


def per_channel(n: int, joint: bool = False) -> int:
    """How many numbers the bispectrum on C_n has: n + 1 of even n, n + 2 of odd, joint 2 more; 2 of a single one."""
    return 2 if n == 1 else 3 + 2 * ((n - 1) // 2 + joint)


def bispectrum(x: Tensor, rows: Tensor, joint: bool = False) -> Tensor:
    """Return the selective bispectrum over C_n, `(B, C, n, *space)` → `(B, C · q, *space)` with q = `per_channel(n)`.

    With Fourier coefficients F̂_k, power P and u(z) = z / √(|z|² + SOFT · P) these are the mean F̂_0, √P, |F̂_1|, and real
    and imaginary part of u(F̂_1) u(F̂_k) F̂*_{k+1} for k = 1 … ⌊(n − 1)/2⌋. A rotation by s steps multiplies F̂_k by
    e^{−2πi sk/n}, which cancels. Where no coefficient is 0 they tell apart all features that no rotation relates: P and
    |F̂_1| say what u does, each product gives F̂_{k+1} from F̂_k, up to the phase of F̂_1, and that is known up to n-th
    roots of 1, for F̂_{n/2} is real, and of odd n the last F̂_{k+1} is the conjugate of F̂_k. |u| ≤ 1, so that nothing is
    larger than the coefficients themselves. Computed in float32 at least.

    So each channel is known up to a rotation of its own. `joint` adds F̂_1 u*(R̂_1) with the first channel R: its phase
    says how a channel is rotated against R, and all channels together are known up to one rotation.
    """
    dtype = torch.float32 if is_autocast(x.device) else x.dtype
    with full_precision(x.device):
        return _of(widened(x), rows, joint).to(dtype)


def _of(x: Tensor, rows: Tensor, joint: bool) -> Tensor:
    n, last = x.shape[2], (x.shape[2] - 1) // 2
    flat = x.reshape(*x.shape[:3], -1)
    re, im = (row.to(flat) @ flat for row in rows)  # (B, C, ⌊n/2⌋ + 1, positions)
    power, size = flat.square().mean(2), re.square() + im.square()
    found = [re[:, :, 0], (power + _TINY).sqrt()]
    if n > 1:
        found.append((size[:, :, 1] + _TINY).sqrt())
        soft = (size + SOFT * power.unsqueeze(2) + _TINY).rsqrt()
        a, b = re * soft, im * soft  # u
        both = slice(1, last + 1)
        c = a[:, :, 1:2] * a[:, :, both] - b[:, :, 1:2] * b[:, :, both]  # u(F̂_1) u(F̂_k)
        d = a[:, :, 1:2] * b[:, :, both] + b[:, :, 1:2] * a[:, :, both]
        e, f = re[:, :, 2:], -im[:, :, 2:]
        if n % 2:
            e, f = torch.cat((e, re[:, :, -1:]), 2), torch.cat((f, im[:, :, -1:]), 2)
        found += [*(c * e - d * f).unbind(2), *(c * f + d * e).unbind(2)]
        if joint:
            own, first = (re[:, :, 1], im[:, :, 1]), (a[:, :1, 1], b[:, :1, 1])
            found += [own[0] * first[0] + own[1] * first[1], own[1] * first[0] - own[0] * first[1]]
    out = torch.stack(found, 2).flatten(1, 2)
    return out.reshape(*out.shape[:-1], *x.shape[3:])
