"""Batch normalisation over R^d × H (app. D: over the domain of the feature maps)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm


class BatchNorm(_BatchNorm):
    """`nn.BatchNorm3d` in state and numbers, for `(B, C, *anything)` and for few channels on a GPU.

    torch's kernels give each channel one block of threads, which leaves a GPU idle at the 10 to 40 channels of a group
    CNN; here statistics are plain reductions, spread over the whole device and fused by `torch.compile`.
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
        if not self.training and self.running_mean is not None and self.running_var is not None:
            mean, variance = self.running_mean, self.running_var
        else:
            mean, variance = self._batch_statistics(input)
        scale = torch.rsqrt(variance + self.eps)
        if self.weight is not None:
            scale = scale * self.weight
        shift = -mean * scale if self.bias is None else self.bias - mean * scale
        shape = (1, -1, *(1,) * (input.ndim - 2))
        return torch.addcmul(shift.to(input.dtype).view(shape), input, scale.to(input.dtype).view(shape))

    def _batch_statistics(self, x: Tensor) -> tuple[Tensor, Tensor]:
        count = x.numel() // x.shape[1]
        if count < 2:
            raise ValueError(f"BatchNorm: x has shape {tuple(x.shape)}, one value a channel; training needs more")
        axes = [0, *range(2, x.ndim)]
        # Half precision would round the sums; the statistics are float32 as in torch's own.
        exact = x if x.dtype in (torch.float32, torch.float64) else x.float()
        variance, mean = torch.var_mean(exact, axes, correction=0)
        if self.running_mean is not None and self.running_var is not None:
            with torch.no_grad():
                if self.num_batches_tracked is not None:
                    self.num_batches_tracked.add_(1)
                rate = 1 / float(self.num_batches_tracked or 1) if self.momentum is None else self.momentum
                self.running_mean.lerp_(mean.detach().to(self.running_mean), rate)
                unbiased = variance.detach() * (count / (count - 1))
                self.running_var.lerp_(unbiased.to(self.running_var), rate)
        return mean, variance
