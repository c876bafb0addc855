"""Batch norm in evaluation, and ReLU, as one operator for torch.compile on a GPU where gradients are wanted.

Left to itself, the compiler of torch 2.11 saves what ReLU cut off with gaps between images, and reads it without: the
gradients of a 3-D network that was compiled in evaluation were wrong on an H200. What is opaque is saved as it is.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..derivatives import again


def wanted(x: Tensor) -> bool:
    """Whether x is on a GPU, and compiled with a backward pass; torch.export traces by other means."""
    return x.is_cuda and torch.is_grad_enabled() and torch.compiler.is_dynamo_compiling()


@torch.library.custom_op("liespline::evaluated", mutates_args=())
def evaluated(x: Tensor, scale: Tensor, shift: Tensor, relu: bool) -> Tensor:
    """Return x · scale + shift by channel, x `(B, C, *anything)`, cut off below zero if asked."""
    return _plain(x, scale, shift, relu).contiguous()


@torch.library.custom_op("liespline::evaluated_gradient", mutates_args=())
def _gradient(grad: Tensor, x: Tensor, scale: Tensor, shift: Tensor, relu: bool) -> tuple[Tensor, Tensor, Tensor]:
    if relu:
        grad = grad * (_plain(x, scale, shift, relu) > 0)
    others = [0, *range(2, x.ndim)]
    dx = (grad * _along(scale, x)).to(x.dtype).contiguous()
    return dx, (grad * x).sum(others, dtype=scale.dtype), grad.sum(others, dtype=shift.dtype)


def _plain(x: Tensor, scale: Tensor, shift: Tensor, relu: bool) -> Tensor:
    out = (x * _along(scale, x) + _along(shift, x)).to(x.dtype)
    return out.relu() if relu else out


def _along(values: Tensor, x: Tensor) -> Tensor:
    """Values `(C,)` as a factor of x."""
    return values.view(-1, *(1,) * (x.ndim - 2))


@evaluated.register_fake
def _(x: Tensor, scale: Tensor, shift: Tensor, relu: bool) -> Tensor:
    return x.new_empty(x.shape)


@_gradient.register_fake
def _(grad: Tensor, x: Tensor, scale: Tensor, shift: Tensor, relu: bool) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), torch.empty_like(scale), torch.empty_like(shift)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.relu = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, scale, shift = ctx.saved_tensors
    if torch.is_grad_enabled():  # the gradient itself will be differentiated
        out = _plain(x, scale, shift, ctx.relu)
        return *again(out, (x, scale, shift), ctx.needs_input_grad[:3], grad), None
    return *_gradient(grad, x, scale, shift, ctx.relu), None


evaluated.register_autograd(_backward, setup_context=_remember)
