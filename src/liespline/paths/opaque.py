"""The dense convolution as an operator that torch.compile takes as it is.

Left to itself the compiler chooses layouts for convolutions and turns every feature map around between layers; torch
2.11 even reads past the end of such copies. Here the layout is part of the operator: channels innermost, always.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from liespline.paths import dense

Size = tuple[int, ...]


def convolve(x: Tensor, sampled: Tensor, stride: Size, padding: Size) -> Tensor:
    """Correlate x (B, *inputs, *space) with sampled (O, A, *inputs, *W) -> (B, O, A, *space), on a GPU."""
    if torch.is_autocast_enabled(x.device.type):
        dtype = torch.get_autocast_dtype(x.device.type)
        x, sampled = x.to(dtype), sampled.to(dtype)
    out: Tensor = _convolve(x, sampled, list(stride), list(padding))
    return out


@torch.library.custom_op("liespline::convolve", mutates_args=())
def _convolve(x: Tensor, sampled: Tensor, stride: list[int], padding: list[int]) -> Tensor:
    weight = dense.merged(sampled, 2, stride).flatten(0, 1)
    out = dense.on_tensor_cores(dense.merged(x, 1, stride), weight, tuple(stride), tuple(padding))
    return out.unflatten(1, sampled.shape[:2])


@_convolve.register_fake
def _(x: Tensor, sampled: Tensor, stride: list[int], padding: list[int]) -> Tensor:
    d = len(stride)
    edges = zip(x.shape[-d:], sampled.shape[-d:], stride, padding, strict=True)
    return _like_conv(x, sampled.shape[:2], [(n + 2 * p - k) // s + 1 for n, k, s, p in edges])


@torch.library.custom_op("liespline::convolve_backward", mutates_args=())
def _convolve_backward(
    grad: Tensor, x: Tensor, sampled: Tensor, stride: list[int], padding: list[int], needs: list[bool]
) -> tuple[Tensor, Tensor]:
    weight, inputs = dense.merged(sampled, 2, stride).flatten(0, 1), x.shape[1 : x.ndim - len(stride)]
    more_in, more_out = dense.gap(weight.shape[1]), dense.gap(weight.shape[0])
    dx, dw, _ = torch.ops.aten.convolution_backward(
        dense.padded(dense.channels_last(grad.flatten(1, 2)), 1, more_out),
        dense.padded(dense.channels_last(dense.merged(x, 1, stride)), 1, more_in),
        dense.padded(dense.padded(weight, 1, more_in), 0, more_out),
        None, stride, padding, [1] * len(stride), False, [0] * len(stride), 1, [*needs, False],
    )  # fmt: skip
    if needs[0]:
        dx = dense.channels_last(dx).narrow(1, 0, weight.shape[1]).unflatten(1, inputs)
    if needs[1]:
        dw = dw[: weight.shape[0], : weight.shape[1]].contiguous().view(sampled.shape)
    return dx if needs[0] else x.new_empty(0), dw if needs[1] else x.new_empty(0)


@_convolve_backward.register_fake
def _(
    grad: Tensor, x: Tensor, sampled: Tensor, stride: list[int], padding: list[int], needs: list[bool]
) -> tuple[Tensor, Tensor]:
    d = len(stride)
    dx = _like_conv(x, x.shape[1 : x.ndim - d], x.shape[-d:]) if needs[0] else x.new_empty(0)
    return dx, sampled.new_empty(sampled.shape) if needs[1] else x.new_empty(0)


def _like_conv(x: Tensor, channels: Sequence[int], space: Sequence[int]) -> Tensor:
    """Memory as a padded convolution leaves it: channels innermost, and a gap after them."""
    count = math.prod(channels)
    out = x.new_empty(x.shape[0], *space, count + dense.gap(count)).movedim(-1, 1)
    return out.narrow(1, 0, count).unflatten(1, tuple(channels))


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, sampled, ctx.stride, ctx.padding = inputs
    ctx.save_for_backward(x, sampled)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, sampled = ctx.saved_tensors
    needs = list(ctx.needs_input_grad[:2])
    dx, dw = _convolve_backward(grad, x, sampled, ctx.stride, ctx.padding, needs)
    return dx if needs[0] else None, dw if needs[1] else None, None, None


_convolve.register_autograd(_backward, setup_context=_remember)
