"""The layers of the paper: lifting, group correlation and projection (section 3.2)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .. import functional
from .._check import Size, whole
from .._torch import as_new, full_precision
from ..grids import Grid
from ..grids.grid import on_cpu
from ..splines import SplineBasis
from . import arguments
from .base import Correlation
from .oversampled import OverH
from .shift import Shiftable, renew
from .spec import checked

REDUCTIONS = ("max", "mean", "sum", "vector", "bispectrum", "joint-bispectrum")


class Lift(Correlation):
    """Lifting correlation (eq. liftingcor): an image `(B, in, *space)` to a feature map `(B, out, N_h, *space)`.

    `weight` is `(out, in/groups, N_x)`. `kernel_size` is the sampled window at the identity, with `nn.Conv2d`'s
    arithmetic of shapes and channel groups; scaling groups grow it with the element. The default basis keeps the kernel
    inside its window.

    `in_type="vector"` lifts vector fields `(B, in, d, *space)`, as `Project("vector")` makes them: h⁻¹v(x) in place of
    f(x), so that a field that rotates with its vectors has feature maps that rotate. `weight` then is
    `(out, in/groups, N_x, d)`. `in_type="tensor"` lifts h⁻¹T(x)h⁻ᵀ of `(B, in, d, d, *space)`.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Size,
        grid: Grid,
        *,
        x_basis: SplineBasis | None = None,
        stride: int | Size = 1,
        padding: int | Size | str = 0,
        padding_mode: str = "zeros",
        groups: int = 1,
        in_type: str = "scalar",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        arguments.grid("Lift", "grid", grid)
        if kernel_size is None:
            raise ValueError("Lift: kernel_size = None, but an image has space axes; give the window, such as 5")
        spec = checked(
            type(self).__name__, in_channels=in_channels, out_channels=out_channels, kernel_size=kernel_size, grid=grid,
            x_basis=x_basis, stride=stride, padding=padding, padding_mode=padding_mode, groups=groups,
            in_type=in_type,
        )  # fmt: skip
        super().__init__(spec, bias=bias, device=device, dtype=dtype)

    def kernel(self) -> Tensor:
        """Return the sampled kernel `(out, N_h, in/groups, *window)`, determinant included.

        Of vectors it is `(out, N_h, in/groups, d, *window)`, of tensors with d² in the place of d.
        """
        x_samples, frames = self.samples()
        weight = self.weight
        with full_precision(x_samples.device):
            wide = weight.to(x_samples.dtype)
            if frames is None:
                return functional.lift_kernel(wide, x_samples[:, 0]).to(weight.dtype)
            return functional.kernel(wide, x_samples, frames).to(weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Lift `(B, in, *space)` to `(B, out, N_h, *space)`."""
        weight = self.weight  # once: a parametrised one is computed anew each time
        self._check(x, weight)
        x_samples, frames = self.samples()
        if frames is None:
            return functional.lift(x, weight, x_samples[:, 0], self.bias, **self._options())
        x = x.flatten(2, 3) if self.in_type == "tensor" else x
        return functional.correlate(x, weight, x_samples, frames, self.bias, **self._options())


class GConv(Correlation):
    """Group correlation (eq. gcor): `(B, in, N_h, *space)` to `(B, out, N_h_out, *space)`.

    `weight` is `(out, in/groups, N_x, N_k)`. `h_basis` decides the kind of kernel on H: dense (a spline on each element
    of the grid, the default), `local`, atrous, or with trainable centres. `kernel_size=None` means feature maps on H
    alone, `(B, in, N_h)`; with `grid` on the sphere and `out_grid` on SO(3) it lifts functions on S² to SO(3).
    Where the grid ends, as one of scales does, splines are cut off (`h_boundary="zero"`), so that features fade towards
    the ends, or divided by the share of them that is left ("renormalise"), or read on as if the features of the last
    elements were those of all beyond ("replicate").
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Size | None,
        grid: Grid,
        *,
        out_grid: Grid | None = None,
        x_basis: SplineBasis | None = None,
        h_basis: SplineBasis | None = None,
        stride: int | Size = 1,
        padding: int | Size | str = 0,
        padding_mode: str = "zeros",
        groups: int = 1,
        h_boundary: str = "zero",
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        arguments.grid("GConv", "grid", grid)
        out_grid = grid if out_grid is None else arguments.grid("GConv", "out_grid", out_grid)
        arguments.same_group("GConv", grid, out_grid, kernel_size)
        spec = checked(
            type(self).__name__, in_channels=in_channels, out_channels=out_channels, kernel_size=kernel_size, grid=grid,
            out_grid=out_grid, x_basis=x_basis, h_basis=arguments.h_basis("GConv", h_basis, grid), stride=stride,
            padding=padding, padding_mode=padding_mode, groups=groups, h_boundary=h_boundary,
        )  # fmt: skip
        super().__init__(spec, bias=bias, device=device, dtype=dtype)

    def kernel(self) -> Tensor:
        """Return the sampled kernel `(out, N_h_out, in/groups, N_h_in, *window)`, with quadrature and determinant."""
        x_samples, h_samples = self.samples()
        assert h_samples is not None
        weight = self.weight
        with full_precision(x_samples.device):
            return functional.kernel(weight.to(x_samples.dtype), x_samples, h_samples).to(weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Correlate `(B, in, N_h, *space)` to `(B, out, N_h_out, *space)`."""
        weight = self.weight  # once: a parametrised one is computed anew each time
        self._check(x, weight)
        x_samples, h_samples = self.samples()
        assert h_samples is not None
        return functional.correlate(x, weight, x_samples, h_samples, self.bias, **self._options())


class Project(Shiftable):
    """Projection over H (eq. projection): `(B, C, N_h, *space)` to `(B, C, *space)`.

    "bispectrum", on `uniform(SO2(), n)`, keeps all of a channel but its orientation, in `per_channel` numbers for each:
    `(B, C · per_channel, *space)` (`functional.bispectrum`). How channels are rotated against each other is lost, and
    so it is by "max"; "joint-bispectrum" keeps it, in two numbers more.

    "sum" is the integral with the grid's Haar weights, "mean" the same over its volume, "max" the maximum. "vector"
    reads a vector off every channel, `(B, C, d, *space)`: v = Σ_h w(h) F(h) h·e₀ over the volume, which turns, and for
    scalings grows, with the input; component i runs along space axis i. `interpolate=4` takes the maximum over four
    times as many orientations, by trigonometric interpolation along H, as `Oversampled` does: it changes less between
    the angles of the grid.
    """

    weights: Tensor

    def __init__(self, reduce: str, grid: Grid, *, interpolate: int = 1) -> None:
        super().__init__()
        if reduce not in REDUCTIONS:
            raise ValueError(f"Project: reduce = {reduce!r}, must be one of {', '.join(REDUCTIONS)}")
        self.reduce = reduce
        self.grid = arguments.grid("Project", "grid", grid)
        if whole("Project", "interpolate", interpolate) > 1 and reduce != "max":
            raise ValueError(f'Project: interpolate = {interpolate}, only "max" depends on it; leave it out')
        self.finer = OverH(functional.interpolation(grid, interpolate)) if interpolate > 1 else None
        self.register_buffer("weights", as_new(self._exact_weights()), persistent=False)

    @property
    def per_channel(self) -> int:
        """How many channels come out for each that goes in."""
        if not self.reduce.endswith("bispectrum"):
            return 1
        return functional.per_channel(len(self.grid), joint=self.reduce == "joint-bispectrum")

    @on_cpu
    def _exact_weights(self) -> Tensor:
        """Return the Haar weights `(N,)`, for vectors times h·e₀ over the volume `(d, N)`, or rows of a DFT."""
        if self.reduce.endswith("bispectrum"):
            return functional.fourier_rows(self.grid)
        if self.reduce != "vector":
            return self.grid.weights
        return functional.directions(self.grid).T * (self.grid.weights / self.grid.weights.sum())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Project:
        super()._apply(fn, recurse)
        self._rederive()
        return self

    def _rederive(self) -> None:
        renew(self.weights, self._exact_weights())

    def forward(self, x: Tensor) -> Tensor:
        """Project `(B, C, N_h, *space)` to `(B, C, *space)`, vectors to `(B, C, d, *space)`."""
        if x.ndim < 3 or x.shape[2] != len(self.grid):
            raise ValueError(
                f"Project: x has shape {tuple(x.shape)}; expected (B, C, {len(self.grid)}, *space), "
                f"the {len(self.grid)} elements of {self.grid!r} on axis 2"
            )
        return functional.project(x if self.finer is None else self.finer(x), self.reduce, self.weights)

    def extra_repr(self) -> str:
        """Show how H is reduced."""
        return f"{self.reduce!r}, {self.grid!r}"
