"""Separable group correlations: channels and H are mixed at every sample, then each field is filtered in space."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn

from .. import functional
from .._check import Size
from .._torch import has_values
from ..grids import Grid
from ..splines import SplineBasis
from . import initial
from .base import Correlation
from .layers import GConv
from .spec import checked

N = TypeVar("N", bound=nn.Module)


class Depthwise(Correlation):
    """A correlation in space alone: out(x, h) = 1/|det h| Σ_y k_c(h⁻¹(y − x)) F_c(y, h), channel by channel.

    `(B, C, N_h, *space)` to `(B, C, N_h, *space)`, with `nn.Conv2d`'s arithmetic of shapes; `weight` is `(C, 1, N_x)`.
    """

    def __init__(
        self,
        channels: int,
        kernel_size: int | Size,
        grid: Grid,
        *,
        x_basis: SplineBasis | None = None,
        stride: int | Size = 1,
        padding: int | Size | str = 0,
        padding_mode: str = "zeros",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        spec = checked(
            type(self).__name__, in_channels=1, out_channels=channels, kernel_size=kernel_size, grid=grid,
            x_basis=x_basis, stride=stride, padding=padding, padding_mode=padding_mode,
        )  # fmt: skip
        super().__init__(spec, bias=bias, device=device, dtype=dtype)
        self._axes = (channels, len(grid))

    def kernel(self) -> Tensor:
        """Return the sampled kernel `(C, N_h, *window)`, determinant included."""
        x_samples, _ = self.samples()
        return functional.depthwise_kernel(self.weight[:, 0], x_samples[:, 0])

    def forward(self, x: Tensor) -> Tensor:
        """Filter the fields of `(B, C, N_h, *space)` in space."""
        weight = self.weight
        self._check(x, weight)
        x_samples, _ = self.samples()
        options = {"stride": self.stride, "padding": self.borders, "padding_mode": self.padding_mode}
        return functional.depthwise(x, weight.flatten(1), x_samples.flatten(0, 1), self.bias, **options)  # type: ignore[arg-type]


class SeparableGConv(nn.Sequential):
    """A `GConv` that mixes channels and H sample by sample, then a `Depthwise` correlation that sees space only.

    `(B, in, N_h, *space)` to `(B, out, N_h, *space)`, arguments as those of `GConv`. Its kernels are products
    K(x, h) = k(x) M(h): with in·out·N_k + out·N_x weights instead of in·out·N_x·N_k, at a fraction of the time.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Size,
        grid: Grid,
        *,
        x_basis: SplineBasis | None = None,
        h_basis: SplineBasis | None = None,
        stride: int | Size = 1,
        padding: int | Size | str = 0,
        padding_mode: str = "zeros",
        h_boundary: str = "zero",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        mix = GConv(
            in_channels, out_channels, 1, grid, h_basis=h_basis, h_boundary=h_boundary, bias=False, device=device,
            dtype=dtype,
        )  # fmt: skip
        filters = Depthwise(
            out_channels, kernel_size, grid, x_basis=x_basis, stride=stride, padding=padding,
            padding_mode=padding_mode, bias=bias, device=device, dtype=dtype,
        )  # fmt: skip
        super().__init__(mix, filters)
        self.grid = self.out_grid = grid
        self._fill_filters()

    def reset_parameters(self, bandwidth: float = initial.BANDWIDTH) -> None:
        """Draw new coefficients of a bandwidth, from 0 to 1/2, so that activations keep their size."""
        for layer in self:
            layer.reset_parameters(bandwidth)  # type: ignore[operator]
        self._fill_filters(bandwidth)

    def _fill_filters(self, bandwidth: float = initial.BANDWIDTH) -> None:
        mix, filters = self
        assert isinstance(mix, GConv)
        assert mix.h_basis is not None
        assert isinstance(filters, Depthwise)
        if not has_values(filters.weight):
            return
        point = functional.space_samples(mix.x_basis, self.grid, mix.window)[0, 0].sum()
        bases = filters.x_basis, mix.h_basis, self.grid, self.grid, filters.window, None, mix.h_boundary
        with torch.no_grad(), torch.device("cpu"):
            drawn = torch.empty(filters.weight.shape, dtype=torch.float64)
            initial.fill_separable(drawn, point * mix.weight.cpu().double(), initial.start(*bases, bandwidth))
            filters.weight.copy_(drawn)


def redraw(network: N, bandwidth: float) -> N:
    """Draw all kernels of a network anew with a bandwidth, from 0 for smooth ones to 1/2 for a flat spectrum."""
    if not 0 <= bandwidth <= 0.5:
        raise ValueError(
            f"redraw: bandwidth = {bandwidth}, must be from 0 for smooth kernels to 0.5 for a flat spectrum"
        )

    def draw(module: nn.Module) -> None:
        if isinstance(module, Correlation | SeparableGConv):
            module.reset_parameters(bandwidth)

    return network.apply(draw)  # parts first: the filters of a separable layer follow its mixing
