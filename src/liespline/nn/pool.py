"""Coarser and finer space for `(B, C, N_h, *space)` feature maps, in 1, 2 and 3 dimensions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..grids.grid import on_cpu
from ..sizes import whole as count
from ..splines import bspline

_MAX: dict[int, Callable[..., Tensor]] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


class _OverSpace(nn.Module):
    """A map of space alone: what follows axis 2 is space, channels and elements go along unchanged."""

    def space(self, x: Tensor) -> Tensor:
        """Map `(B, channels, *space)`."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Map the space axes of `(B, C, N_h, *space)`."""
        if not 4 <= x.ndim <= 6:
            name = type(self).__name__
            raise ValueError(
                f"{name}: x has shape {tuple(x.shape)}; expected (B, C, N_h, *space) with 1 to 3 space axes"
            )
        if x.stride(1) == 1 and x.shape[2] > 1:  # channels innermost, as the Triton path leaves them: no copy this way
            return self.space(x.transpose(1, 2).flatten(0, 1)).unflatten(0, (len(x), x.shape[2])).transpose(1, 2)
        return self.space(x.flatten(1, 2)).unflatten(1, x.shape[1:3])


class MaxPool(_OverSpace):
    """Spatial max pooling with `nn.MaxPool2d`'s arithmetic; in 2-D the same as `nn.MaxPool3d((1, k, k))`."""

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0) -> None:
        super().__init__()
        self.kernel_size = count("MaxPool", "kernel_size", kernel_size)
        self.stride = count("MaxPool", "stride", kernel_size if stride is None else stride)
        self.padding = padding

    def space(self, x: Tensor) -> Tensor:
        """Take the maximum in each window."""
        return _MAX[x.ndim - 2](x, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        """Show the window."""
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"


class Downsample(_OverSpace):
    """Anti-aliased down-sampling: a B-spline of the new spacing as low-pass filter, then every `factor`-th sample.

    Max pooling lets high frequencies alias and costs equivariance; this keeps it. Samples 0, factor, 2·factor, … stay,
    so the grid remains symmetric about the image's centre where (size − 1) is a multiple of the factor.
    """

    taps: Tensor

    def __init__(self, factor: int = 2, *, degree: int = 3) -> None:
        super().__init__()
        self.factor, self.degree = count("Downsample", "factor", factor), degree
        self.register_buffer("taps", self._taps().to(torch.get_default_dtype()), persistent=False)

    @on_cpu
    def _taps(self) -> Tensor:
        reach = (self.degree + 1) * self.factor // 2
        taps = bspline(torch.arange(-reach, reach + 1, dtype=torch.float64) / self.factor, self.degree)
        taps = taps[taps > 0] if self.factor > 1 else torch.ones(1, dtype=torch.float64)
        return taps / taps.sum()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Downsample:
        super()._apply(fn, recurse)
        self.taps = self._taps().to(self.taps)  # from float64, so that no precision is lost on the way
        return self

    def space(self, x: Tensor) -> Tensor:
        """Filter and thin out one axis after another, the border continued by its edge value."""
        return _along_axes(x, self._matrix)

    def _matrix(self, size: int) -> Tensor:
        """Return the filter as a matrix `(samples kept, size)`."""
        kept = torch.arange(0, size, self.factor, device=self.taps.device)
        reads = kept.unsqueeze(1) + torch.arange(len(self.taps), device=self.taps.device) - len(self.taps) // 2
        reads = reads.clamp(0, size - 1).unsqueeze(-1) == torch.arange(size, device=self.taps.device)
        return (reads * self.taps.unsqueeze(-1)).sum(1)

    def extra_repr(self) -> str:
        """Show the factor."""
        return f"{self.factor}, degree={self.degree}"


class Upsample(_OverSpace):
    """Linear up-sampling of space by a whole factor, with `nn.Upsample`'s arithmetic (corners not aligned)."""

    def __init__(self, factor: int = 2) -> None:
        super().__init__()
        self.factor = count("Upsample", "factor", factor)

    def space(self, x: Tensor) -> Tensor:
        """Interpolate linearly between samples, the border continued by its edge value."""
        # As matrix products: torch's own gradient sorts indices on a GPU where it must be the same every time.
        return _along_axes(x, lambda size: self._matrix(size, torch.promote_types(x.dtype, torch.float32), x.device))

    def _matrix(self, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Return the weights `(factor·size, size)` of the samples that each new one lies between."""
        places = (torch.arange(self.factor * size, dtype=dtype, device=device) + 0.5) / self.factor - 0.5
        distances = places.clamp(0, size - 1).unsqueeze(1) - torch.arange(size, device=device)
        return (1 - distances.abs()).relu()

    def extra_repr(self) -> str:
        """Show the factor."""
        return str(self.factor)


def _along_axes(x: Tensor, matrix_of: Callable[[int], Tensor]) -> Tensor:
    """Apply to every space axis of `(B, channels, *space)` the matrix made for its size."""
    for axis in range(2, x.ndim):
        # As a matrix product: convolutions of a single channel are slow everywhere, their gradients more so.
        matrix = matrix_of(x.shape[axis]).to(x.dtype)
        rest = x.shape[axis + 1 :]
        x = (matrix @ x.flatten(axis + 1)).unflatten(-1, rest) if rest else x @ matrix.T
    return x
