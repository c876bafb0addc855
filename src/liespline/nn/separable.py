"""Separable group correlations: channels and H are mixed at every sample, then each field is filtered in space."""

from __future__ import annotations

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
        return functional.depthwise(x, weight[:, 0], x_samples[:, 0], self.bias, **options)  # type: ignore[arg-type]


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

    def reset_parameters(self) -> None:
        """Draw new coefficients so that activations keep their size through layers followed by ReLU."""
        for layer in self:
            layer.reset_parameters()  # type: ignore[operator]
        self._fill_filters()

    def _fill_filters(self) -> None:
        mix, filters = self
        assert isinstance(mix, GConv)
        assert mix.h_basis is not None
        assert isinstance(filters, Depthwise)
        if not has_values(filters.weight):
            return
        space = functional.space_samples(filters.x_basis, self.grid, filters.window)
        point = functional.space_samples(mix.x_basis, self.grid, mix.window)[0, 0].sum()
        group = functional.group_samples(mix.h_basis, self.grid, self.grid, boundary=mix.h_boundary)
        with torch.no_grad(), torch.device("cpu"):
            drawn = torch.empty(filters.weight.shape, dtype=torch.float64)
            initial.fill_separable(drawn, point * mix.weight.cpu().double(), space, group)
            filters.weight.copy_(drawn)
