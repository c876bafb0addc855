"""Max pooling of `(B, C, N_h, *space)` feature maps, in 1, 2 and 3 dimensions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._check import whole
from ..ops.layout import over_space
from .arguments import tell_off_centre

_MAX: dict[int, Callable[..., Tensor]] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


class OverSpace(nn.Module):
    """A map of space alone: what follows axis 2 is space, channels and elements go along unchanged."""

    def space(self, x: Tensor) -> Tensor:
        """Map `(B, channels, *space)`."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Map the space axes of `(B, C, N_h, *space)`."""
        return self.over_space(x, self.space)

    def over_space(self, x: Tensor, space: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply a map of `(B, channels, *space)` to `(B, C, N_h, *space)`."""
        if not 4 <= x.ndim <= 6:
            name = type(self).__name__
            raise ValueError(
                f"{name}: x has shape {tuple(x.shape)}; expected (B, C, N_h, *space) with 1 to 3 space axes"
            )
        return over_space(x, space)


class MaxPool(OverSpace):
    """Spatial max pooling with `nn.MaxPool2d`'s arithmetic; in 2-D the same as `nn.MaxPool3d((1, k, k))`.

    Windows that do not fill the image leave its last samples out and lie off its centre: the layer says so once.
    `Downsample` is symmetric at every size, and keeps the equivariance that maxima lose.
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0) -> None:
        super().__init__()
        self.kernel_size = whole("MaxPool", "kernel_size", kernel_size)
        self.stride = whole("MaxPool", "stride", kernel_size if stride is None else stride)
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        """Take the maximum in each window of `(B, C, N_h, *space)`."""
        if not torch.compiler.is_compiling() and x.ndim > 3 and x.shape[2] > 1:
            for size in x.shape[3:]:
                tell_off_centre("MaxPool", size, self.kernel_size, self.stride, self.padding, self.padding)
        return super().forward(x)

    def space(self, x: Tensor) -> Tensor:
        """Take the maximum in each window."""
        return _MAX[x.ndim - 2](x, self.kernel_size, self.stride, self.padding)

    def extra_repr(self) -> str:
        """Show the window."""
        return f"{self.kernel_size}, stride={self.stride}, padding={self.padding}"
