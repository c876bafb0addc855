"""Batch norm, ReLU and max pooling of `(B, C, N_h, *space)` as one operator of torch, in the layouts paths leave."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._torch import traced
from ..derivatives import again, followed, quick
from ..operator import on_its_device
from ..operator import operator as registered
from . import kernels
from .launches import backward_launches, empty, forward_launches, ordered, space_of


class Memory(NamedTuple):
    """The running statistics of a norm, which a step moves towards its own by `rate`, and counts."""

    mean: Tensor
    variance: Tensor
    batches: Tensor | None
    rate: float


def normalise(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int,
    memory: Memory | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """pool(relu(batch norm(x))) and (5, C) facts: mean, variance, 1/√(variance + eps), scale, shift.

    Where it is traced there is no memory: a compiler adds what is remembered to kernels of its own.
    """
    if traced(x):
        return operator(x, weight, bias, eps, relu, pool)
    found: tuple[Tensor, Tensor] = _Normalise.apply(x, weight, bias, eps, relu, pool, memory)
    return found


@on_its_device
def _forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int,
    memory: Memory | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    x = ordered(x)
    exact = _exact(x)
    to = forward_launches(x.shape, x.stride(), pool, exact)
    (rows, share, pooled, stride, columns, high, wide), (reads, finishes, writes) = to.numbers, to.options
    facts = torch.empty(5, x.shape[1], device=x.device, dtype=exact)
    partial = torch.empty(to.programs, 2, to.columns, device=x.device, dtype=exact)
    kernels.moments[to.sums](x, partial, rows, share, stride, columns, **reads)
    mean, variance, batches, rate = memory or (None, None, None, 0.0)
    kernels.finish_moments[(x.shape[1],)](
        partial, x, weight, bias, facts, mean, variance, batches, to.programs, to.columns, to.samples, eps, rate,
        AFFINE=weight is not None, REMEMBER=mean is not None, COUNT=batches is not None, **finishes,
    )  # fmt: skip
    out = x.new_empty_strided(to.shape, to.strides)
    kernels.apply[to.written](x, facts, out, pooled, stride, columns, high, wide, RELU=relu, **writes)
    return out, facts


@on_its_device
def _backward(grad: Tensor, x: Tensor, facts: Tensor, relu: bool, pool: int) -> tuple[Tensor, Tensor]:
    """The gradient of x, and (4, C) terms of which the first two are those of weight and bias."""
    x = ordered(x)
    exact = facts.dtype
    to = backward_launches(x.shape, x.stride(), grad.shape, grad.stride(), relu, pool, exact)
    if to is None:
        grad = empty(x, space_of(grad)).copy_(grad)
        to = backward_launches(x.shape, x.stride(), grad.shape, grad.stride(), relu, pool, exact)
        assert to is not None
    (rows, share, *sizes), (reads, finishes, writes) = to.numbers, to.options
    terms = torch.empty(4, x.shape[1], device=x.device, dtype=exact)
    partial = torch.empty(to.programs, 2, to.columns, device=x.device, dtype=exact)
    kernels.gradient_sums[to.sums](grad, x, facts, partial, rows, share, *sizes, **reads)
    kernels.finish_gradient[(x.shape[1],)](partial, facts, terms, to.programs, to.columns, to.samples, **finishes)
    out = x.new_empty_strided(to.shape, to.strides)
    kernels.gradient[to.written](grad, x, facts, terms, out, rows, *sizes, **writes)
    return out, terms


def _plain(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int) -> Tensor:
    """The same by torch's own operators."""
    out = F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    out = F.relu(out) if relu else out
    return out if pool == 1 else F.max_pool2d(out.flatten(0, 2), pool).unflatten(0, out.shape[:3])


@quick
class _Normalise(torch.autograd.Function):
    """Eagerly, where an operator of torch's library takes longer to call than the kernels to launch."""

    @staticmethod
    def forward(
        x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int, memory: Memory | None
    ) -> tuple[Tensor, Tensor]:
        return _forward(x, weight, bias, eps, relu, pool, memory)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _remember(ctx, inputs[:6], output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *_send_back(ctx, grad, _backward), None


def _fake_forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int
) -> tuple[Tensor, Tensor]:
    return empty(ordered(x), space_of(x, pool)), x.new_empty(5, x.shape[1], dtype=_exact(x))


def _fake_backward(grad: Tensor, x: Tensor, facts: Tensor, relu: bool, pool: int) -> tuple[Tensor, Tensor]:
    x = ordered(x)
    return empty(x, space_of(x)), facts.new_empty(4, x.shape[1])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, bias, ctx.eps, ctx.relu, ctx.pool = inputs
    ctx.save_for_backward(x, weight, bias, output[1])
    ctx.mark_non_differentiable(output[1])


def _send_back(ctx: Any, grad: Tensor, gradients: Callable[..., tuple[Tensor, Tensor]]) -> tuple[Tensor | None, ...]:
    x, weight, bias, facts = ctx.saved_tensors
    if followed():
        formula = partial(_plain, eps=ctx.eps, relu=ctx.relu, pool=ctx.pool)
        return *again(formula, (x, weight, bias), ctx.needs_input_grad[:3], grad), None, None, None
    dx, terms = gradients(grad, x, facts, ctx.relu, ctx.pool)
    return dx, None if weight is None else terms[0], None if bias is None else terms[1], None, None, None


def _exact(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


# For torch.compile, which looks into nothing that launches kernels itself.
operator_backward = registered(
    "normalise_backward(Tensor grad, Tensor x, Tensor facts, bool relu, SymInt pool) -> (Tensor, Tensor)",
    _backward, _fake_backward,
)  # fmt: skip
operator = registered(
    "normalise(Tensor x, Tensor? weight, Tensor? bias, float eps, bool relu, SymInt pool) -> (Tensor, Tensor)",
    _forward, _fake_forward,
    lambda ctx, grad, _: _send_back(ctx, grad, operator_backward), _remember,
)  # fmt: skip
