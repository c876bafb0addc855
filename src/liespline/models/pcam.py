"""The SE(2) network for metastasis detection in PCam patches (tab. GCNNPCAM)."""

from __future__ import annotations

from torch import nn

from ..grids import disc, uniform
from ..groups import SO2
from ..nn import GConv, Lift, NormReLU, Project
from ..splines import SplineBasis
from .kernels import h_basis

# Channels for each number of splines on H, chosen by the paper to keep the number of weights near 107,000.
_CHANNELS = {1: 40, 3: 23, 4: 20, 5: 18, 8: 14, 12: 11, 16: 10}


def pcam(n_h: int = 12, n_k: int = 12, kernel: str = "dense", *, degree: int = 2) -> nn.Sequential:
    """Return the paper's PCam network: 88×88 RGB patches `(B, 3, 88, 88)` to logits of two classes `(B, 2)`.

    n_h orientations, n_k splines on them, kernel "dense", "local" or "atrous"; n_h = n_k = 1 is the 2-D baseline. The
    paper puts 21 splines of degree 2 in a 5×5 window, which reaches past it when turned: the layers say so once.
    """
    if n_k not in _CHANNELS:
        raise ValueError(f"pcam: n_k = {n_k}, the paper's table has {', '.join(map(str, _CHANNELS))}")
    if kernel not in ("dense", "local", "atrous"):
        raise ValueError(f'pcam: kernel = {kernel!r}, must be "dense", "local" or "atrous"')
    width, grid = _CHANNELS[n_k], uniform(SO2(), n_h)
    x_basis = SplineBasis(disc(5), degree=degree)
    point = SplineBasis(disc(1), degree=degree)
    h = h_basis(grid, kernel, n_k, degree=degree)

    def correlation(pool: int = 1) -> list[nn.Module]:
        layer = GConv(width, width, 5, grid, x_basis=x_basis, h_basis=h, bias=False)
        return [layer, NormReLU(width, pool, eps=1e-3)]

    last = nn.Conv2d(16, 2, 1)
    nn.init.constant_(last.bias, 0.01)  # type: ignore[arg-type]
    return nn.Sequential(
        Lift(3, width, 5, grid, x_basis=x_basis, bias=False),  # 88 → 84
        NormReLU(width, 2, eps=1e-3),  # 84 → 42
        *correlation(pool=2),  # 42 → 38 → 19
        *correlation(pool=3),  # 19 → 15 → 5
        *correlation(),  # 5 → 1
        GConv(width, 64, 1, grid, x_basis=point, h_basis=h, bias=False),
        NormReLU(64, eps=1e-3),
        Project("max", grid),
        nn.Conv2d(64, 16, 1, bias=False),
        NormReLU(16, eps=1e-3),
        last,
        nn.Flatten(),
    )
