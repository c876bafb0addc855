"""Batch normalisation over all processes of a run, on CPUs and GPUs alike.

torch's own synchronised norm works on GPUs alone and gives each channel one block of threads, which is slow at
the channel counts of group CNNs.
"""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch.plugins import LayerSync
from torch import Tensor, distributed, nn

from ...nn import BatchNorm


class SharedBatchNorm(BatchNorm):
    """A batch norm whose statistics are those of the whole batch, not of one process's share of it."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel over the batch, the group and space; outside training as BatchNorm does."""
        if not (self.training and distributed.is_initialized()):
            return super().forward(input)
        self._check_input_dim(input)
        return self.weighted(input, summed)


class _Sum(torch.autograd.Function):
    """The sum of a tensor over all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        total = part.contiguous().clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return summed(gradients[0])


def summed(part: Tensor) -> Tensor:
    """The sum over all processes, differentiable in each one's part."""
    total: Tensor = _Sum.apply(part)
    return total


class ShareStatistics(LayerSync):
    """Lightning's hook: share the statistics of every batch norm while a run has several processes."""

    def apply(self, model: nn.Module) -> nn.Module:
        """Make each batch norm one that shares: it differs in what it computes alone, and keeps all that it has."""
        return _became(model, BatchNorm, SharedBatchNorm)

    def revert(self, model: nn.Module) -> nn.Module:
        """Make them what they were."""
        return _became(model, SharedBatchNorm, BatchNorm)


def _became(model: nn.Module, old: type[BatchNorm], new: type[BatchNorm]) -> nn.Module:
    for module in model.modules():
        if type(module) is old:
            module.__class__ = new
    return model
