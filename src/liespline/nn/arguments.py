"""What a layer may be asked for, and one clear message for everything else."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NoReturn

from torch import Tensor

from .. import functional
from .._check import Size, sizes, whole
from .._torch import is_autocast
from ..functional import Padding, Window
from ..functional.ends import BOUNDARIES
from ..grids import Grid, disc
from ..grids.grid import on_cpu
from ..groups import Translation
from ..splines import SplineBasis

_MODES = ("zeros", "reflect", "replicate", "circular", "disc")
_told: set[object] = set()


def grid(layer: str, name: str, value: Grid) -> Grid:
    """Return a grid."""
    if not isinstance(value, Grid):
        raise ValueError(f"{layer}: {name} is a {type(value).__name__}, must be a Grid such as uniform(SO2(), 12)")
    return value


def kernel_size(layer: str, value: int | Sequence[int] | None, dims: int) -> Size:
    """Return the window at the identity; () where there is no space."""
    return () if value is None else sizes(layer, "kernel_size", value, dims, least=1)


def padding(layer: str, value: int | Sequence[int] | str, window: Size, stride: Size) -> Padding:
    """Return how far each space axis is padded, "same" as torch does."""
    if isinstance(value, str):
        if value != "same":
            raise ValueError(f'{layer}: padding = {value!r}, must be a whole number, {len(window)} of them or "same"')
        if any(s != 1 for s in stride):
            raise ValueError(f'{layer}: padding = "same" keeps the size of its input, which stride = {stride} does not')
        return Padding(tuple((k - 1) // 2 for k in window), tuple(k // 2 for k in window))
    both = sizes(layer, "padding", value, len(window), least=0)
    return Padding(both, both)


def groups(layer: str, value: int, in_channels: int, out_channels: int) -> int:
    """Return the number of channel groups."""
    if whole(layer, "groups", value) and (in_channels % value or out_channels % value):
        raise ValueError(f"{layer}: groups = {value}, must divide in_channels = {in_channels} and out = {out_channels}")
    return value


def padding_mode(layer: str, value: str) -> str:
    """Return how the padding is filled."""
    if value not in _MODES:
        raise ValueError(f"{layer}: padding_mode = {value!r}, must be one of {', '.join(_MODES)}")
    return value


def same_group(layer: str, given: Grid, out: Grid, window: object) -> None:
    """Check that features on one grid can be correlated to features on the other."""
    if given.group == out.group or (window is None and given.group.quotient_of == out.group):
        return
    hint = "; from S² to SO(3) functions have no space axes: kernel_size=None" if given.group.quotient_of else ""
    raise ValueError(f"{layer}: grid lies on {given.group!r} and out_grid on {out.group!r}, must be the same{hint}")


def x_basis(layer: str, basis: SplineBasis | None, window: Size, dims: int) -> SplineBasis:
    """Return the spatial basis; by default the disc one ring inside the window, where rotated kernels still fit."""
    if not window:
        if basis is not None:
            raise ValueError(f"{layer}: x_basis is given, but kernel_size = None leaves no space for it")
        return SplineBasis(disc(1, dims), degree=0)
    if basis is None:
        # One ring inside a 3-wide window there is a single centre, which is useless: that window keeps its nine.
        return SplineBasis(disc(tuple(k - 2 if k > 3 else k for k in window), dims))
    if basis.grid.group != Translation(dims):
        right = Translation(dims)
        raise ValueError(f"{layer}: x_basis lies on {basis.grid.group!r}, must lie on {right!r}: lattice or disc")
    return basis


def h_basis(layer: str, basis: SplineBasis | None, grid: Grid) -> SplineBasis:
    """Return the basis on H; by default a spline on every element of the input's grid."""
    if basis is None:
        return SplineBasis(grid)
    if basis.grid.group != grid.group:
        raise ValueError(f"{layer}: h_basis lies on {basis.grid.group!r} but the input's grid on {grid.group!r}")
    return basis


def h_boundary(layer: str, value: str, out_grid: Grid, basis: SplineBasis | None) -> str:
    """Return what splines on H do where the grid ends."""
    if value not in BOUNDARIES:
        raise ValueError(f'{layer}: h_boundary = {value!r}, must be "zero", "renormalise" or "replicate"')
    if value == "replicate" and basis is not None and basis.trainable:
        raise ValueError(f'{layer}: h_boundary = "replicate" is for fixed centres; trainable ones take "renormalise"')
    if value != "zero" and out_grid.group.quotient_of is not None:
        raise ValueError(f'{layer}: h_boundary = {value!r}, but {out_grid.group!r} has no ends: leave it at "zero"')
    return value


def in_type(layer: str, value: str, grid: Grid) -> str:
    """Return what an image holds at each of its samples."""
    if value not in ("scalar", "vector", "tensor"):
        raise ValueError(f'{layer}: in_type = {value!r}, must be "scalar", "vector" or "tensor"')
    if value != "scalar" and grid.group.quotient_of is not None:
        raise ValueError(f"{layer}: in_type = {value!r} needs a group, not the quotient {grid.group!r}: take SO3()")
    return value


def overlap(layer: str, x_samples: Tensor, h_samples: Tensor | None) -> None:
    """Check that kernels see something at all."""
    for name, samples in (("x_basis", x_samples), ("h_basis", h_samples)):
        if samples is not None and not samples.abs().max() > 1e-6:
            where = "the window" if name == "x_basis" else "the elements h⁻¹h̃ of these grids"
            raise ValueError(f"{layer}: no spline of {name} reaches {where}; move its centres or widen its scale")
    largest = float(x_samples.abs().max())
    if not largest < 1e30:  # with room for sums, in the float32 that kernels are sampled in
        raise ValueError(f"{layer}: 1/|det h| times the basis reaches {largest:.0e}; take elements h that shrink less")


def warn_if_cut_off(layer: str, basis: SplineBasis, grid: Grid, window: Window) -> None:
    """Say once how much of a kernel falls outside its window, where that differs between elements.

    A part that is cut off alike for all of them, as under quarter turns, costs no equivariance. Scalings do not cut
    alike: their windows are whole numbers of samples. 25 centres of degree 2 in 5×5 are off by 8e-2 at √2, the default
    by 5e-3, and the nine centres of a 3×3 window by 0.17 at 2^¼.
    """
    if len(grid) == 1 or math.prod(window.kernel_size) == 1:
        return
    lost, spread = _lost(basis, grid, window)
    if spread > 0.03 and (basis, window.kernel_size) not in _told:
        _told.add((basis, window.kernel_size))
        size, fits = ("×".join(str(k + more) for k in window.kernel_size) for more in (0, 2))
        warnings.warn(
            f"{layer}: up to {lost:.0%} of a basis function's energy falls outside the {size} window when the kernel "
            f"is transformed, which costs equivariance in proportion. A {fits} window, or centres further inside "
            f"({len(basis)} now), or the default x_basis of a window of 5 or more avoids it.",
            stacklevel=4,
        )


def tell_off_centre(layer: str, size: int, window: int, stride: int, before: int, after: int) -> None:
    """Say once where windows lie off the image's centre, about which it is turned, by `shift / 2` samples."""
    shift = after - before - (size + before + after - window) % stride
    case = (layer, size % (2 * stride), window, stride, before, after)
    if shift and case not in _told:
        _told.add(case)
        why = "an odd window" if stride == 1 else "liespline.nn.Downsample instead of the stride, or another size,"
        warnings.warn(
            f"{layer}: windows of {window} at stride {stride}, padding {before} and {after}, lie {abs(shift) / 2:g} "
            f"samples off the centre of {size} samples, which costs equivariance: {why} avoids it.",
            stacklevel=4,
        )


@lru_cache(maxsize=256)
@on_cpu
def _lost(basis: SplineBasis, grid: Grid, window: Window) -> tuple[float, float]:
    """Return the largest share of a basis function's energy that the window cuts off, and by how much it varies."""
    radius = float(basis.grid.elements.norm(dim=-1).max()) + basis.reach * math.sqrt(len(window.kernel_size))
    roomy = tuple(2 * math.ceil(radius) + k % 2 for k in window.kernel_size)
    kept, whole = (_energy(basis, grid, w) for w in (window, functional.window(grid, roomy)))
    lost = 1 - kept / whole  # (A, N_x)
    return float(lost.max()), float((lost.amax(0) - lost.amin(0)).max())


def _energy(basis: SplineBasis, grid: Grid, window: Window) -> Tensor:
    points, factor = functional.space_points(grid, window)
    return (basis(points) * factor.unsqueeze(-1)).square().sum(1)  # (A, N_x)


def wrong_shape(layer: str, x: Tensor, axes: Size, d: int, in_type: str) -> NoReturn:
    """Say what an input should look like."""
    fields = "(B, in, *space)" if len(axes) == 1 else "(B, in, N_h, *space)"
    layout = {"vector": "(B, in, d, *space)", "tensor": "(B, in, d, d, *space)"}.get(in_type, fields)
    expected = ("B", *map(str, axes), *("S" * d))
    raise ValueError(f"{layer}: x has shape {tuple(x.shape)}; expected ({', '.join(expected)}), that is {layout}")


def check_same_kind(layer: str, x: Tensor, weight: Tensor) -> None:
    """Check that an input lies where the layer does, and has its dtype unless autocast is on."""
    if x.device != weight.device:
        raise ValueError(f"{layer}: x is on {x.device} but the layer's weight on {weight.device}")
    if not is_autocast(x.device):
        raise ValueError(f"{layer}: x is {x.dtype} but the layer's weight {weight.dtype}; cast one to the other")


def too_small(layer: str, x: Tensor, kernel_size: Size, padding: Padding) -> NoReturn:
    """Say which space axis of an input is shorter than the window."""
    space = x.shape[x.ndim - len(kernel_size) :]
    every = list(zip(space, kernel_size, *padding, strict=True))
    axis = next(i for i, (size, k, p, q) in enumerate(every) if size + p + q < k)
    size, k, p, q = every[axis]
    raise ValueError(
        f"{layer}: space axis {axis} of x has {size} samples, {size + p + q} with its padding, "
        f"fewer than the window's {k}: x has shape {tuple(x.shape)}"
    )
