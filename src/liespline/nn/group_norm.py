"""Norms whose statistics are those of one image, for small batches: of its channels one by one, in groups, or all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._torch import widened
from ..grids import Grid
from .statistics import HaarWeighted, affine


class GroupNorm(HaarWeighted, nn.GroupNorm):
    """`nn.GroupNorm` over H × space: each group of channels of each image to mean 0 and variance 1.

    With a `grid`, means over H have its Haar weights, so that they do not depend on where a function is sampled. State
    and, on uniform grids, numbers are torch's.
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, *,
        grid: Grid | None = None,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_groups, num_channels, eps, affine, device=device, dtype=dtype)
        self._set_grid(grid, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Normalise `(B, C, N_h, *space)`."""
        self._check(input)
        if self.haar is None:
            return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps).to(input.dtype)
        x = widened(input)
        centred = x - self._means(x)
        normal = centred * torch.rsqrt(self._means(centred.square()) + self.eps)
        return affine(normal, self.weight, self.bias).to(input.dtype)

    def _means(self, values: Tensor) -> Tensor:
        """The integrals over groups of channels, H and space over their volume: `(B, C, 1, …)`."""
        grouped = self._weigh(values).unflatten(1, (self.num_groups, -1))
        means = grouped.mean(tuple(range(2, grouped.ndim)), keepdim=True)
        return means.expand(-1, -1, self.num_channels // self.num_groups, *(-1,) * (values.ndim - 2)).flatten(1, 2)

    def _check(self, x: Tensor) -> None:
        name = type(self).__name__
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            raise ValueError(
                f"{name}: x has shape {tuple(x.shape)}; expected (B, {self.num_channels}, ...), channels on axis 1"
            )
        if x[:1].numel() == self.num_groups:
            raise ValueError(
                f"{name}: x has shape {tuple(x.shape)}, one value per image and group of channels, which would all "
                "become the bias; its statistics need more"
            )


class InstanceNorm(GroupNorm):
    """`GroupNorm` of single channels: each channel of each image over H × space, `weight` and `bias` too."""

    def __init__(self, num_channels: int, eps: float = 1e-5, affine: bool = True, **options: Any) -> None:
        super().__init__(num_channels, num_channels, eps, affine, **options)


class LayerNorm(GroupNorm):
    """`GroupNorm` of all channels at once: each image over channels × H × space."""

    def __init__(self, num_channels: int, eps: float = 1e-5, affine: bool = True, **options: Any) -> None:
        super().__init__(1, num_channels, eps, affine, **options)


class ChannelNorm(nn.Module):
    """`nn.LayerNorm` over the channels of every position and element by itself, as ConvNeXt has it."""

    def __init__(
        self, num_channels: int, eps: float = 1e-6, affine: bool = True, *,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm = nn.LayerNorm(num_channels, eps, affine, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise `(B, C, N_h, *space)`."""
        (channels,) = self.norm.normalized_shape
        if x.ndim < 2 or x.shape[1] != channels:
            raise ValueError(f"ChannelNorm: x has shape {tuple(x.shape)}; expected (B, {channels}, ...)")
        return self.norm(x.movedim(1, -1)).movedim(-1, 1)
