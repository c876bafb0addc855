"""Batch norm, max pooling and an activation of `(B, C, N_h, *space)` as one operator, in the layouts paths leave."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..._torch import traced
from ..operator import Differentiable, Gradients, Operator, on_its_device
from . import kernels
from .launches import Launches, backward_launches, empty, forward_launches, ordered, space_of
from .reference import normalise as normalised


class Memory(NamedTuple):
    """The running statistics of a norm, which a step moves towards its own by `rate`, and counts."""

    mean: Tensor
    variance: Tensor
    batches: Tensor | None
    rate: float


def normalise(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, activation: str, pool: int,
    memory: Memory | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """activation(pool(batch norm(x))) and (5, C) facts: mean, variance, 1/√(variance + eps), scale, shift.

    Where it is traced there is no memory: a compiler adds what is remembered to kernels of its own.
    """
    remembered = () if traced(x) else (memory,)
    found: tuple[Tensor, Tensor] = operator(x, weight, bias, eps, activation, pool, *remembered)
    return found


@on_its_device
def _forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, activation: str, pool: int,
    memory: Memory | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    x = ordered(x)
    exact = _exact(x)
    to = forward_launches(x.shape, x.stride(), activation, pool, exact)
    facts, partial, out = _memory(x, to, 5, exact)
    kernels.moments[to.sums](x=x, out=partial, **to.adding)
    mean, variance, batches, rate = memory or (None, None, None, 0.0)
    kernels.finish_moments[(x.shape[1],)](
        partial=partial, x=x, weight=weight, bias=bias, facts=facts, running_mean=mean, running_variance=variance,
        batches=batches, eps=eps, rate=rate, AFFINE=weight is not None, REMEMBER=mean is not None,
        COUNT=batches is not None, **to.finishing,
    )  # fmt: skip
    kernels.apply[to.writes](x=x, facts=facts, out=out, **to.writing)
    return out, facts


@on_its_device
def _backward(grad: Tensor, x: Tensor, facts: Tensor, activation: str, pool: int) -> tuple[Tensor, Tensor]:
    """The gradient of x, and (4, C) terms of which the first two are those of weight and bias."""
    x = ordered(x)
    exact = facts.dtype
    to = backward_launches(x.shape, x.stride(), grad.shape, grad.stride(), activation, pool, exact)
    if to is None:
        grad = empty(x, space_of(grad)).copy_(grad)
        to = backward_launches(x.shape, x.stride(), grad.shape, grad.stride(), activation, pool, exact)
        assert to is not None
    terms, partial, out = _memory(x, to, 4, exact)
    kernels.gradient_sums[to.sums](grad=grad, x=x, facts=facts, out=partial, **to.adding)
    kernels.finish_gradient[(x.shape[1],)](partial=partial, facts=facts, terms=terms, **to.finishing)
    kernels.gradient[to.writes](grad=grad, x=x, facts=facts, terms=terms, out=out, **to.writing)
    return out, terms


def _memory(x: Tensor, to: Launches, numbers: int, exact: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """For so many numbers of each channel, for the sums of each program, and for what is written."""
    found = torch.empty(numbers, x.shape[1], device=x.device, dtype=exact)
    partial = torch.empty(to.sums[0], 2, to.finishing["columns"], device=x.device, dtype=exact)
    return found, partial, x.new_empty_strided(to.shape, to.strides)


def _fake_forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, activation: str, pool: int
) -> tuple[Tensor, Tensor]:
    return empty(ordered(x), space_of(x, pool)), x.new_empty(5, x.shape[1], dtype=_exact(x))


def _fake_backward(grad: Tensor, x: Tensor, facts: Tensor, activation: str, pool: int) -> tuple[Tensor, Tensor]:
    x = ordered(x)
    return empty(x, space_of(x)), facts.new_empty(4, x.shape[1])


def _exact(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


_operator_backward = Operator(
    "normalise_backward(Tensor grad, Tensor x, Tensor facts, str activation, SymInt pool) -> (Tensor, Tensor)",
    _backward, _fake_backward,
)  # fmt: skip


def _gradients(needs: Sequence[bool], grad: Tensor, x: Tensor, *rest: Any) -> Gradients:
    weight, bias, _, activation, pool, *_, facts = rest
    dx, terms = _operator_backward(grad, x, facts, activation, pool)
    return dx, None if weight is None else terms[0], None if bias is None else terms[1]


def _plain(*args: Any) -> Tensor:
    return normalised(*args[:6])


operator = Differentiable(
    "normalise(Tensor x, Tensor? weight, Tensor? bias, float eps, str activation, SymInt pool) -> (Tensor, Tensor)",
    _forward, _fake_forward, plain=_plain, gradients=_gradients, tensors=3,
)  # fmt: skip
