"""What a correlation is made of, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import functional
from .._check import Size, sizes, whole
from ..functional import Padding, Window
from ..grids import Grid
from ..splines import SplineBasis
from . import arguments


@dataclass(frozen=True, kw_only=True)
class Spec:
    """The checked arguments of a layer, one value for each axis of space, and the window of every element."""

    in_channels: int
    out_channels: int
    kernel_size: Size
    grid: Grid
    out_grid: Grid
    x_basis: SplineBasis
    h_basis: SplineBasis | None
    stride: Size
    padding: Padding
    padding_mode: str
    groups: int
    h_boundary: str
    in_type: str
    window: Window


def checked(
    layer: str,
    *,
    in_channels: int,
    out_channels: int,
    kernel_size: int | Sequence[int] | None,
    grid: Grid,
    x_basis: SplineBasis | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int] | str,
    padding_mode: str,
    groups: int = 1,
    out_grid: Grid | None = None,
    h_basis: SplineBasis | None = None,
    h_boundary: str = "zero",
    in_type: str = "scalar",
) -> Spec:
    """Return the spec of a layer by its name; ValueError for what it may not be asked for."""
    whole(layer, "in_channels", in_channels)
    whole(layer, "out_channels", out_channels)
    arguments.groups(layer, groups, in_channels, out_channels)
    out_grid = grid if out_grid is None else out_grid
    space_dim = out_grid.group.space_dim
    taps = arguments.kernel_size(layer, kernel_size, space_dim)
    strides = sizes(layer, "stride", stride, len(taps), least=1)
    window = functional.window(out_grid, taps)
    spec = Spec(
        in_channels=in_channels, out_channels=out_channels, kernel_size=taps, grid=grid, out_grid=out_grid,
        x_basis=arguments.x_basis(layer, x_basis, taps, space_dim), h_basis=h_basis, stride=strides,
        padding=arguments.padding(layer, padding, taps, strides),
        padding_mode=arguments.padding_mode(layer, padding_mode), groups=groups,
        h_boundary=arguments.h_boundary(layer, h_boundary, out_grid, h_basis),
        in_type=arguments.in_type(layer, in_type, out_grid), window=window,
    )  # fmt: skip
    arguments.warn_if_cut_off(layer, spec.x_basis, out_grid, window)
    return spec
