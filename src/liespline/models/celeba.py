"""The scale-translation network for facial landmarks in CelebA (tab. GCNNCelebA)."""

import math

import torch
from torch import Tensor, nn

from .._check import whole
from ..functional import Padding, Window
from ..grids import Grid, lattice
from ..groups import Scale
from ..nn import GConv, Lift, NormReLU, Project, Upsample
from ..splines import SplineBasis
from .kernels import h_basis
from .pretrained import Pretrained, ready

_CHANNELS = {1: 27, 2: 21, 3: 17, 4: 15, 5: 14}
_STEP = 0.5 * math.log(2)
_RANGES = {1: 1.0, 2: 1.6, 3: 2.0, 4: 2.8, 5: 4.0}
"""Largest over smallest scale in the released scripts, by the number of scales."""


@ready
def celeba(
    n_h: int = 5,
    n_k: int = 3,
    kernel: str = "local",
    *,
    scale: float = 1.0,
    degree: int = 2,
    preset: str = "paper",
    in_channels: int = 3,
    landmarks: int = 5,
) -> Pretrained:
    """Return the paper's CelebA network: images `(B, 3, H, W)` to logits of five heatmaps `(B, 5, H, W)`, H and W even.

    Other data have other numbers of channels and landmarks.

    n_h scales from `scale` on, n_k splines on them, kernel "dense", "local" or "atrous". n_h = n_k = 1 is the 2-D
    baseline at the fixed `scale`. Preset "paper" is the text's: scales `scale`·√2^i and splines one such step apart.
    "released" is what the published scripts did: the scales of `scale_grid`; n_k neighbouring splines ln(range)/n_h
    apart, also under the name of dense kernels; and one window of 2⌊3s⌋ + 1 samples for all scales up to s.
    """
    if n_k not in _CHANNELS:
        raise ValueError(f"celeba: n_k = {n_k}, the paper's table has {', '.join(map(str, _CHANNELS))}")
    if kernel not in ("dense", "local", "atrous"):
        raise ValueError(f'celeba: kernel = {kernel!r}, must be "dense", "local" or "atrous"')
    grid = scale_grid(n_h, scale, preset)
    if preset == "released" and (n_h, n_k) != (1, 1) and (n_h == 1 or kernel == "atrous"):
        raise ValueError(
            f"celeba: n_h = {n_h}, n_k = {n_k}, kernel = {kernel!r}; the released scripts had no such network: "
            'take n_h ≥ 2 with "dense" or "local", or preset="paper"'
        )
    if preset == "paper":
        # From the identity on, where kernels have their centres (h_i ∈ H_d, app. D).
        from_one = Grid(grid.group, grid.elements / grid.elements[0], grid.weights, grid.spacing)
        basis, side = h_basis(from_one, kernel, n_k, degree=degree), None
    else:
        step = math.log(_RANGES[n_h]) / n_h if n_h > 1 else 1.0
        basis = SplineBasis(_neighbours(n_k, step), degree=degree)
        side = 2 * math.floor(3 * float(grid.elements.max()) + 1e-6) + 1
    return _Landmarks(_CHANNELS[n_k], grid, basis, degree, in_channels, landmarks, side)


def scale_grid(n_h: int, scale: float = 1.0, preset: str = "paper") -> Grid:
    """Return the scales that the network sees, equidistant in ln s: H_d = {scale·e^{(i−1)s_h}} (app. D).

    "paper": s_h = ½ ln 2. "released": from 1 to 1.6, 2, 2.8, 4 for two to five scales, s_h = ln(range)/(n_h − 1).
    """
    if preset not in ("paper", "released"):
        raise ValueError(f'celeba: preset = {preset!r}, must be "paper" or "released"')
    whole("celeba", "n_h", n_h)
    if not scale > 0:
        raise ValueError(f"celeba: scale = {scale}, must be a positive factor")
    step = _STEP
    if preset == "released" and n_h > 1:
        if n_h not in _RANGES:
            raise ValueError(f"celeba: n_h = {n_h}, the released scripts have {', '.join(map(str, _RANGES))}")
        step = math.log(_RANGES[n_h]) / (n_h - 1)
    scales = scale * (step * torch.arange(n_h, dtype=torch.float64)).exp().unsqueeze(-1)
    return Grid(Scale(2), scales, torch.full((n_h,), step, dtype=torch.float64), step)


class _Landmarks(Pretrained):
    """Two blocks of lifting, two correlations and a mean over scale, at full and half resolution, then plain layers.

    The paper's weight counts hold only if both blocks' outputs go into layer 7, a skip connection it does not mention.
    """

    def __init__(
        self, width: int, grid: Grid, h: SplineBasis, degree: int, in_channels: int, landmarks: int, side: int | None
    ) -> None:
        super().__init__()
        x_basis = SplineBasis(lattice(2, 5), degree=degree)

        def block(in_channels: int) -> nn.Sequential:
            layers: list[nn.Module] = [Lift(in_channels, width, 5, grid, x_basis=x_basis, padding="same", bias=False)]
            for _ in range(2):
                layers.append(NormReLU(width, eps=1e-3))
                layers.append(GConv(width, width, 5, grid, x_basis=x_basis, h_basis=h, padding="same", bias=False))
            return nn.Sequential(*layers, NormReLU(width, eps=1e-3), Project("mean", grid))

        self.fine = block(in_channels)
        self.coarse = nn.Sequential(nn.MaxPool2d(2), block(width))
        for layer in self.modules():
            if side is not None and isinstance(layer, Lift | GConv):
                _in_one_window(layer, side)
        self.finer = Upsample(2)
        self.head = nn.Sequential(
            nn.Conv2d(2 * width, 32, 3, padding=1, bias=False),
            NormReLU(32, eps=1e-3),
            nn.Conv2d(32, 32, 3, padding=1, bias=False),
            NormReLU(32, eps=1e-3),
            nn.Conv2d(32, 64, 1, bias=False),
            NormReLU(64, eps=1e-3),
            nn.Conv2d(64, landmarks, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map images to heatmap logits; their sigmoid is the heatmap."""
        fine = self.fine(x)
        return self.head(torch.cat((fine, self.finer.space(self.coarse(fine))), 1))


def _neighbours(n_k: int, step: float) -> Grid:
    """Return the scripts' centres, in steps from the identity: [0, 1] of two, [−1, 0, 1] of three, [−1 … 2] of four."""
    steps = torch.arange(n_k, dtype=torch.float64) - (n_k - 1) // 2
    return Grid(Scale(2), (step * steps).exp().unsqueeze(-1), torch.full((n_k,), step, dtype=torch.float64), step)


def _in_one_window(layer: Lift | GConv, side: int) -> None:
    """Sample the kernels of all scales in one window, in place of one window per scale."""
    layer.window = Window(layer.kernel_size, ((side, side),) * len(layer.out_grid))
    layer.borders = Padding(*layer.window.borders(layer.padding))
    layer.to(layer.weight.device)  # samples the kernels again
    layer.reset_parameters()
