"""The SE(2) network for metastasis detection in PCam patches (tab. GCNNPCAM)."""

from typing import Any

from torch import nn

from ..grids import disc, uniform
from ..groups import SO2
from ..nn import Downsample, GConv, Lift, NormReLU, Project
from ..splines import SplineBasis
from .kernels import h_basis
from .pretrained import Chain, ready

# Channels for each number of splines on H, chosen by the paper to keep the number of weights near 107,000.
_CHANNELS = {1: 40, 3: 23, 4: 20, 5: 18, 8: 14, 12: 11, 16: 10}


@ready
def pcam(n_h: int = 12, n_k: int = 12, kernel: str = "dense", *, degree: int = 2, kernel_size: int = 5) -> Chain:
    """Return the paper's PCam network: 88×88 RGB patches `(B, 3, 88, 88)` to logits of two classes `(B, 2)`.

    n_h orientations, n_k splines on them, kernel "dense", "local" or "atrous"; n_h = n_k = 1 is the 2-D baseline. The
    paper puts 21 splines of degree 2 in a 5×5 window, which reaches past it when turned: the layers say so once.
    `kernel_size=7` is the same chain, as many weights, made for turns: windows that hold 21 splines whole, and
    `Downsample` in place of max pooling.
    """
    if n_k not in _CHANNELS:
        raise ValueError(f"pcam: n_k = {n_k}, the paper's table has {', '.join(map(str, _CHANNELS))}")
    if kernel not in ("dense", "local", "atrous"):
        raise ValueError(f'pcam: kernel = {kernel!r}, must be "dense", "local" or "atrous"')
    if kernel_size not in (5, 7):
        raise ValueError(f"pcam: kernel_size = {kernel_size}, must be 5, the paper's, or 7, which holds splines whole")
    width, grid = _CHANNELS[n_k], uniform(SO2(), n_h)
    whole = kernel_size == 7
    x_basis = None if whole else SplineBasis(disc(5), degree=degree)
    border: dict[str, Any] = {"padding": 3, "padding_mode": "replicate"} if whole else {}
    point = SplineBasis(disc(1), degree=degree)
    h = h_basis(grid, kernel, n_k, degree=degree)

    def norm(pool: int) -> list[nn.Module]:
        return [NormReLU(width, eps=1e-3), Downsample(2)] if whole else [NormReLU(width, pool, eps=1e-3)]

    def correlation() -> nn.Module:
        return GConv(width, width, kernel_size, grid, x_basis=x_basis, h_basis=h, bias=False)

    last = nn.Conv2d(16, 2, 1)
    nn.init.constant_(last.bias, 0.01)  # type: ignore[arg-type]
    # The paper's sizes, and those of whole windows, which all lie about the centre of the patch.
    return Chain(
        Lift(3, width, kernel_size, grid, x_basis=x_basis, bias=False, **border),  # 88 → 84 or 88
        *norm(2),  # 42 or 44
        correlation(),  # 38
        *norm(2),  # 19
        correlation(),  # 15 or 13
        *norm(3),  # 5 or 7
        correlation(),  # 1
        NormReLU(width, eps=1e-3),
        GConv(width, 64, 1, grid, x_basis=point, h_basis=h, bias=False),
        NormReLU(64, eps=1e-3),
        Project("max", grid),
        nn.Conv2d(64, 16, 1, bias=False),
        NormReLU(16, eps=1e-3),
        last,
        nn.Flatten(),
    )
