"""Batch normalisation over R^d × H (app. D: over the domain of the feature maps), and what usually follows it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from .._torch import traced, unlabelled, widened
from ..grids import Grid
from ..ops import choose
from .group_norm import InstanceNorm, LayerNorm
from .pool import MaxPool
from .statistics import HaarWeighted, affine


class _Again(threading.local):
    seen = False  # whether a norm has met this batch before, and remembers it already


_again = _Again()


def recomputed(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Return the function's value and keep nothing within it for the backward pass, which computes it again.

    Norms count a batch once, not twice.
    """
    options: dict[str, Any] = {"use_reentrant": False}
    if not torch.compiler.is_compiling():  # which follows no contexts, and itself computes again what reads, not writes
        options["context_fn"] = lambda: (nullcontext(), _seen_before())
        # As they are in the backward pass, where torch leaves other classes out.
        tensors = tuple(map(unlabelled, tensors))
    out: Tensor = checkpoint(function, *tensors, **options)
    return out


@contextmanager
def _seen_before() -> Iterator[None]:
    before, _again.seen = _again.seen, True
    try:
        yield
    finally:
        _again.seen = before


class BatchNorm(HaarWeighted, _BatchNorm):
    """`nn.BatchNorm3d` in state and numbers, for `(B, C, *anything)` and for few channels on a GPU.

    torch's kernels give each channel one block of threads, which leaves a GPU idle at the 10 to 40 channels of a group
    CNN; here the sums are spread over the whole device. With a `grid`, means over H have its Haar weights, so that they
    do not depend on where a function is sampled; on uniform grids that changes nothing.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, *, grid: Grid | None = None,
        device: torch.device | str | None = None, dtype: torch.dtype | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device=device, dtype=dtype)
        self._set_grid(grid, device, dtype)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim < 2 or input.shape[1] != self.num_features:
            raise ValueError(
                f"BatchNorm: x has shape {tuple(input.shape)}; expected (B, {self.num_features}, ...), "
                "channels on axis 1"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each channel over the batch, the group and space."""
        if self.can_fuse(input):
            return self.normalise(input)
        if self.haar is not None and (self.training or self.running_mean is None) and input.numel() > 0:
            return self.weighted(input)
        if _again.seen and self.training and self.running_mean is not None and self.running_var is not None:
            lost = self.running_mean.clone(), self.running_var.clone()
            return F.batch_norm(input.flatten(2), *lost, self.weight, self.bias, True, 0.0, self.eps).view_as(input)
        # As (B, C, everything else): cuDNN takes no more than five axes.
        return super().forward(input.flatten(2)).view(input.shape) if input.ndim > 3 else super().forward(input)

    def can_fuse(self, x: Tensor) -> bool:
        """Whether this is a training step that our own kernels take."""
        self._check_input_dim(x)
        by_batch = self.training or self.running_mean is None
        if by_batch and x.numel() == self.num_features:
            raise ValueError(f"BatchNorm: x has shape {tuple(x.shape)}, one value per channel; training needs more")
        even = self.haar is None and (self.weight is None) == (self.bias is None)
        return by_batch and even and choose.fuses(x)

    def normalise(self, x: Tensor, *, activation: str = "", pool: int = 1) -> Tensor:
        """Normalise by the batch's own statistics, then perhaps take maxima over pool × pool samples and activate."""
        from ..ops.norm.fused import Memory, normalise  # here, since importing it needs Triton

        memory, mean, variance = None, self.running_mean, self.running_var
        rate = None if _again.seen or traced(x) else self.momentum
        if mean is not None and variance is not None and rate is not None:
            memory = Memory(mean, variance, self.num_batches_tracked, rate)
        out, facts = normalise(x, self.weight, self.bias, self.eps, activation, pool, memory)
        if memory is None:
            count = x.numel() // self.num_features
            self._remember(facts[0], facts[1] * (count / (count - 1)))
        return out

    def weighted(self, x: Tensor, total: Callable[[Tensor], Tensor] = lambda part: part) -> Tensor:
        """Normalise by the batch's own means over Haar's measure; `total` adds up what several processes have."""
        axes, shape = [0, *range(2, x.ndim)], (1, -1, *(1,) * (x.ndim - 2))
        values = widened(x)
        sums = total(torch.cat([self._weigh(values).sum(axes), values.new_tensor([x.numel() // x.shape[1]])]))
        mean, count = sums[:-1] / sums[-1], sums[-1].detach()
        # The squares are summed about the mean: their raw sum would cancel where the mean is large.
        centred = values - mean.view(shape)
        variance = total(self._weigh(centred.square()).sum(axes)) / count
        self._remember(mean.detach(), variance.detach() * count / (count - 1))
        normal = centred * torch.rsqrt(variance + self.eps).view(shape)
        return affine(normal, self.weight, self.bias).to(x.dtype)

    @torch.no_grad()
    def _remember(self, mean: Tensor, unbiased: Tensor) -> None:
        if self.running_mean is None or self.running_var is None or _again.seen:
            return
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        rate = 1 / float(self.num_batches_tracked or 1) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), rate)
        self.running_var.lerp_(unbiased.to(self.running_var), rate)


NORMS = {"batch": BatchNorm, "instance": InstanceNorm, "layer": LayerNorm}


ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": partial(nn.ReLU, inplace=True),
    "silu": nn.SiLU,
    "gelu": nn.GELU,
}
"""The activations that are fused with batch norm on a GPU, by name."""


def activation_named(where: str, name: str) -> nn.Module:
    """Return a new activation, or say which there are."""
    if name not in ACTIVATIONS:
        raise ValueError(f"{where}: activation = {name!r}, must be one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


class NormAct(nn.Sequential):
    """`BatchNorm`, if asked for `MaxPool(pool)`, and an activation, of `(B, C, N_h, *space)`.

    `activation` is "relu", "silu" or "gelu", `norm` is "batch", "instance" or "layer". In training on a GPU batch norm
    and what follows are one pass over memory for the statistics and one for all the rest, and nothing between them is
    kept. Everywhere else, and wherever a child was exchanged, they run one after the other.
    """

    def __init__(
        self, channels: int, activation: str = "relu", pool: int = 1, norm: str = "batch", **options: Any
    ) -> None:
        where = type(self).__name__
        if norm not in NORMS:
            raise ValueError(f'{where}: norm = {norm!r}, must be "batch", "instance" or "layer"')
        # The maximum comes first: it leaves less for the activation, and ReLU makes no difference to it.
        pools = [MaxPool(pool)] if pool > 1 else []
        super().__init__(NORMS[norm](channels, **options), *pools, activation_named(where, activation))

    def forward(self, input: Tensor) -> Tensor:
        """Normalise, pool, activate."""
        norm, pool = self[0], self._whole_windows(input)
        if pool and type(norm) is BatchNorm and norm.can_fuse(input):
            return norm.normalise(input, activation=_fused(self[-1]), pool=pool)
        return super().forward(input)

    def _whole_windows(self, x: Tensor) -> int:
        """The side of the pooling windows, 1 without; 0 if a child is another or watched, or windows do not fill x."""
        modules = list(self._modules.values())  # by index they are slow to find
        if not _fused(modules[-1]) or any(m._forward_hooks or m._forward_pre_hooks for m in modules):
            return 0
        if len(modules) == 2:
            return 1
        pool = modules[1]
        if type(pool) is not MaxPool or (pool.stride, pool.padding) != (pool.kernel_size, 0) or x.ndim != 5:
            return 0
        return 0 if any(n % pool.kernel_size for n in x.shape[3:]) else pool.kernel_size


class NormReLU(NormAct):
    """`NormAct` with ReLU."""

    def __init__(self, channels: int, pool: int = 1, norm: str = "batch", **options: Any) -> None:
        super().__init__(channels, "relu", pool, norm, **options)


def _fused(activation: nn.Module) -> str:
    """What the kernels call an activation; nothing for others."""
    if type(activation) is nn.GELU and activation.approximate != "none":
        return ""
    return _FUSED.get(type(activation), "")


_FUSED = {nn.ReLU: "relu", nn.SiLU: "silu", nn.GELU: "gelu"}
