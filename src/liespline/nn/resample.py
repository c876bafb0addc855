"""Coarser and finer space about one centre, for `(B, C, N_h, *space)` feature maps in 1, 2 and 3 dimensions.

Where samples lie, for every size n and factor f: ⌈n/f⌉ samples, f apart, symmetric about the image's centre (n − 1)/2.
Halving keeps samples 0, 2, 4, … of an odd size, and takes the points 0.5, 2.5, … between the samples of an even one.
So turns and flips about the centre go through at every size, and what went down comes up again at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from .._check import Size, sizes, whole
from .._torch import as_new, beside, traced, transformed
from ..grids.grid import on_cpu
from ..splines import bspline
from .pool import OverSpace

Made = dict[tuple[object, ...], Tensor]
"""Matrices by size, factor, dtype and device."""
_MOST_KEPT = 16


class Downsample(OverSpace):
    """Anti-aliased down-sampling: a B-spline of the new spacing as low-pass filter, read at every `factor`-th point.

    Max pooling lets high frequencies alias and costs equivariance; this keeps it. `(B, C, N_h, *space)` to
    `(B, C, N_h, *⌈space/factor⌉)`, symmetric about the image's centre at every size; a factor for all axes of space, or
    one per axis, such as (1, 2, 2) for thick slices.
    """

    taps: Tensor

    def __init__(self, factor: int | Sequence[int] = 2, *, degree: int = 3) -> None:
        super().__init__()
        self.factor, self.degree = _factor("Downsample", factor), degree
        self._made: Made = {}
        self.register_buffer("taps", as_new(self._taps()), persistent=False)

    @on_cpu
    def _taps(self) -> Tensor:
        """Return the filter at whole and half samples from its middle to where it is zero, a row per given factor."""
        rows = []
        for factor in self.factor if isinstance(self.factor, tuple) else (self.factor,):
            steps = torch.arange((self.degree + 1) * factor + 1, dtype=torch.float64)
            rows.append(bspline(steps / (2 * factor), self.degree) if factor > 1 else (steps == 0).double())
        return nn.utils.rnn.pad_sequence(rows, batch_first=True)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Downsample:
        super()._apply(fn, recurse)
        self._made.clear()
        self.taps = beside(self._taps(), self.taps).to(
            self.taps
        )  # from float64, so that no precision is lost on the way
        return self

    def space(self, x: Tensor) -> Tensor:
        """Filter and thin out one axis after another; at the border, by the part of the filter that is inside."""
        factors = sizes("Downsample", "factor", self.factor, x.ndim - 2)
        taps = self.taps.expand(len(factors), -1)
        ways = list(zip(x.shape[2:], factors, strict=True))
        return _along_axes(x, ways, self._made, lambda axis: self._matrix(*ways[axis], taps[axis]))

    def _matrix(self, size: int, factor: int, taps: Tensor) -> Tensor:
        """Return the filter as a matrix `(samples kept, size)`."""
        fine = 2 * torch.arange(size, device=taps.device)
        distances = (_places(size, factor, fine.device).unsqueeze(1) - fine).abs()
        matrix = taps[distances.clamp(max=len(taps) - 1)]
        return matrix / matrix.sum(1, keepdim=True)

    def extra_repr(self) -> str:
        """Show the factor."""
        return f"{self.factor}, degree={self.degree}"


class Upsample(OverSpace):
    """Linear up-sampling of space by a whole factor, back to where `Downsample` took its samples from.

    `up(x, size)` returns to that size, which has to be one that the factor brings to x's: `up(low, skip.shape[3:])`.
    Without it the size is `factor` times that of x, and the numbers are those of `nn.Upsample` (corners not aligned).
    A factor for all axes of space, or one per axis.
    """

    def __init__(self, factor: int | Sequence[int] = 2) -> None:
        super().__init__()
        self._made: Made = {}
        self.factor = _factor("Upsample", factor)

    def forward(self, x: Tensor, size: Sequence[int] | None = None) -> Tensor:
        """Interpolate `(B, C, N_h, *space)` to `(B, C, N_h, *size)`."""
        return self.over_space(x, lambda flat: self.space(flat, size))

    def space(self, x: Tensor, size: Sequence[int] | None = None) -> Tensor:
        """Interpolate `(B, channels, *space)` linearly between samples, the border continued by its edge value."""
        factors, coarse = sizes("Upsample", "factor", self.factor, x.ndim - 2), tuple(x.shape[2:])
        fine = tuple(f * n for f, n in zip(factors, coarse, strict=True)) if size is None else tuple(size)
        brought = tuple(kept(n, f) for n, f in zip(fine, factors, strict=False))
        if len(fine) != len(factors) or brought != coarse:
            raise ValueError(
                f"Upsample: size = {fine}, which factor {self.factor} brings to {brought}, but x has {coarse}"
            )
        dtype = torch.promote_types(x.dtype, torch.float32)
        # As matrix products: torch's own gradient sorts indices on a GPU where it must be the same every time.
        ways = list(zip(fine, factors, strict=True))
        return _along_axes(x, ways, self._made, lambda axis: self._matrix(*ways[axis], dtype, x.device))

    def _matrix(self, size: int, factor: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return the weights `(size, ⌈size/factor⌉)` of the samples that each new one lies between."""
        fine = 2 * torch.arange(size, device=device).unsqueeze(1)
        distances = (fine - _places(size, factor, device)).abs()
        matrix = (1 - distances.to(dtype) / (2 * factor)).relu()
        return matrix / matrix.sum(1, keepdim=True)

    def extra_repr(self) -> str:
        """Show the factor."""
        return str(self.factor)


def _factor(layer: str, value: int | Sequence[int]) -> int | Size:
    """Return a factor for all axes, or one per axis."""
    one = isinstance(value, int)
    return whole(layer, "factor", value) if one else sizes(layer, "factor", value, len(value))  # type: ignore[arg-type]


def kept(size: int, factor: int) -> int:
    """How many samples down-sampling by a factor leaves of `size`."""
    return (size + factor - 1) // factor


def _places(size: int, factor: int, device: torch.device) -> Tensor:
    """Where the samples that are kept lie, counted from sample 0 in half samples, so that they are whole numbers."""
    coarse = torch.arange(kept(size, factor), device=device)
    return size - 1 + factor * (2 * coarse - kept(size, factor) + 1)


def _along_axes(x: Tensor, ways: Sequence[tuple[int, int]], made: Made, matrix_of: Callable[[int], Tensor]) -> Tensor:
    """Apply to every space axis of `(B, channels, *space)` its matrix; channels stay innermost if they are.

    A matrix depends on the size and the factor of its axis, `ways`.
    """
    last = int(x.stride(1) == 1 and x.shape[1] > 1)
    x = x.movedim(1, -1) if last else x
    for axis, way in enumerate(ways, 2):
        # As a matrix product: convolutions of a single channel are slow everywhere, their gradients more so.
        matrix = _once(made, (*way, x.dtype, x.device), x, partial(matrix_of, axis - 2))
        rest = x.shape[axis + 1 - last :]
        x = (matrix @ x.flatten(axis + 1 - last)).unflatten(-1, rest) if rest else x @ matrix.T
    return x.movedim(-1, 1) if last else x


def _once(made: Made, key: tuple[object, ...], x: Tensor, make: Callable[[], Tensor]) -> Tensor:
    """Return the matrix of a key, which takes a dozen steps to make: anew only where x is followed."""
    if traced(x) or transformed() or (x.is_cuda and torch.cuda.is_current_stream_capturing()):
        return make().to(x.dtype)
    if key not in made:
        if len(made) == _MOST_KEPT:
            made.clear()
        with torch.inference_mode(False):
            made[key] = make().to(x.dtype)
    return made[key]
