"""Batch normalisation over R^d × H (app. D: over the domain of the feature maps)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.modules.batchnorm import _BatchNorm

from ..paths import triton


class BatchNorm(_BatchNorm):
    """`nn.BatchNorm3d` in state and numbers, for `(B, C, *anything)` and for few channels on a GPU.

    torch's kernels give each channel one block of threads, which leaves a GPU idle at the 10 to 40 channels of a group
    CNN; here the sums are spread over the whole device, and what is left fuses under `torch.compile`.
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2 or input.shape[1] != self.num_features:
            raise ValueError(
                f"BatchNorm: x has shape {tuple(input.shape)}; expected (B, {self.num_features}, ...), "
                "channels on axis 1"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel over the batch, the group and space."""
        self._check_input_dim(input)
        count = input.numel() // self.num_features
        if not self.training and self.running_mean is not None and self.running_var is not None:
            return super().forward(input)
        if count < 2:
            raise ValueError(f"BatchNorm: x has shape {tuple(input.shape)}, one value a channel; training needs more")
        if not triton.sums_available(input):
            return super().forward(input)
        out, mean, variance = _OnGPU.apply(input, self.weight, self.bias, self.eps)
        self._remember(mean, variance * (count / (count - 1)))
        return out

    @torch.no_grad()
    def _remember(self, mean: Tensor, unbiased: Tensor) -> None:
        if self.running_mean is None or self.running_var is None:
            return
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        rate = 1 / float(self.num_batches_tracked or 1) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), rate)
        self.running_var.lerp_(unbiased.to(self.running_var), rate)


class _OnGPU(torch.autograd.Function):
    """Two passes over memory each way: sums, then a linear map a channel."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        count = x.numel() // x.shape[1]
        # Sums of squares cancel where the mean is large; about a sample of the channel itself they do not.
        start = x[0]
        while start.ndim > 1:
            start = start[..., 0]
        start = start.to(torch.promote_types(x.dtype, torch.float32))
        moments = triton.sums(x, x, start, start) / count
        mean, variance = start + moments[0], (moments[1] - moments[0].square()).clamp_min(0)
        inverse = torch.rsqrt(variance + eps)
        scale = inverse if weight is None else inverse * weight
        shift = -mean * scale if bias is None else bias - mean * scale
        ctx.save_for_backward(x, mean, inverse, scale)
        ctx.present = weight is not None, bias is not None
        ctx.mark_non_differentiable(mean, variance)
        return triton.blend(x, x, scale, torch.zeros_like(scale), shift), mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, None]:
        x, mean, inverse, scale = ctx.saved_tensors
        count = x.numel() // x.shape[1]
        total = triton.sums(grad, x, torch.zeros_like(mean), mean)  # Σ g and Σ g (x − mean)
        slope = -scale * inverse.square() * total[1] / count
        dx = triton.blend(grad, x, scale, slope, -scale * total[0] / count - slope * mean)
        weight, bias = ctx.present
        return dx, total[1] * inverse if weight else None, total[0] if bias else None, None
