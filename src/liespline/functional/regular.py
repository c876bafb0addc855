"""The left-regular representation on sampled functions (eq. splitting, app. B)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ..grids import Grid
from ..grids.grid import same
from ..grids.regular import centred
from ..groups import Element, Group
from ..splines import SplineBasis


def left_regular(g: Element, f: Tensor, group: Group, grid: Grid | None = None) -> Tensor:
    """Return L_g f, an image or feature map moved by g = (x, h): f(h⁻¹(x′ − x)), and F(h⁻¹(x′ − x), h⁻¹h′) on G.

    f is `(B, C, *space)`, or `(B, C, N_h, *space)` where `grid` is given; x counts samples from the image's centre.
    Between samples, and between elements of the grid, it interpolates linearly; what comes from outside is 0. Moves
    that carry samples to samples, such as quarter turns, are exact to rounding.
    """
    d = group.space_dim
    lead = 2 if grid is None else 3
    if f.ndim != lead + d:
        layout = "(B, C, *space)" if grid is None else "(B, C, N_h, *space)"
        raise ValueError(f"left_regular: f has shape {tuple(f.shape)}; expected {layout} with {d} space axes")
    x, h = g.x.to(f), g.h.to(f)
    if grid is not None:
        if f.shape[2] != len(grid):
            raise ValueError(f"left_regular: f has {f.shape[2]} elements on axis 2; {grid!r} has {len(grid)}")
        f = torch.einsum("ab,ncb...->nca...", _turned(g.h, grid).to(f), f)
    space = f.shape[lead:]
    points = centred(space, dtype=f.dtype, device=f.device)
    source = group.pull(h, points - x)  # (*space, d), where each sample comes from
    half = torch.tensor([max(n - 1, 1) / 2 for n in space], dtype=f.dtype, device=f.device)
    where = (source / half).flip(-1).expand(len(f), *space, d)  # grid_sample counts axes from the last
    flat = f.flatten(1, lead - 1)
    if d == 1:  # grid_sample knows two and three axes
        where = torch.cat((where, torch.zeros_like(where)), -1).unsqueeze(1)
        return F.grid_sample(flat.unsqueeze(2), where, align_corners=True).reshape(f.shape)
    return F.grid_sample(flat, where, align_corners=True).reshape(f.shape)


def _turned(h: Tensor, grid: Grid) -> Tensor:
    """Return the weights with which the grid's values make up those at h⁻¹h_a, `(N, N)`."""
    source = grid.group.relative(h.to(grid.elements), grid.elements)
    exact = same(grid, source).double()
    linear = SplineBasis(grid, degree=1)(source)
    linear = linear / linear.sum(-1, keepdim=True).clamp_min(1)
    return torch.where(exact.any(-1, keepdim=True), exact, linear)
