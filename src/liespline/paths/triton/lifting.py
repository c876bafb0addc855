"""Lifting images of few channels on a GPU, where cuDNN takes ten times what writing the result would."""

from typing import Any

import torch
import triton
from torch import Tensor

from liespline.paths import cuda
from liespline.paths.triton import lifting_kernels as kernels
from liespline.paths.triton.norm import as_matrix, ordered

Ints = list[int]
_ROWS = 128  # of a block
_PROGRAMS = 512  # that share a gradient


def lift(x: Tensor, kernel: Tensor, stride: tuple[int, ...], padding: tuple[int, ...]) -> Tensor:
    """Correlate images x (B, C, H, W) with kernel (O, A, C, KH, KW) -> (B, O, A, H', W'), elements innermost."""
    out: Tensor = _lift(x, kernel, list(stride), list(padding))
    return out


@torch.library.custom_op("liespline::lift", mutates_args=())
def _lift(x: Tensor, kernel: Tensor, stride: Ints, padding: Ints) -> Tensor:
    out = _empty(x, kernel, stride, padding)
    columns, shapes, tile = kernel.shape[0] * kernel.shape[1], _shapes(x, out, stride, padding), _tile(kernel)
    rows = out.numel() // columns
    weight = kernel.new_zeros(kernel.shape[3], tile["BK"], tile["NP"], dtype=x.dtype)
    run = weight[:, : kernel.shape[2] * kernel.shape[4], :columns]
    run.unflatten(2, kernel.shape[:2]).unflatten(1, (kernel.shape[4], -1)).copy_(kernel.permute(3, 4, 2, 0, 1))
    kernels.forward[(triton.cdiv(rows, _ROWS), tile["NP"] // tile["BN"])](
        _last(x), weight, out, rows, columns, *shapes, **tile, BM=_ROWS, num_warps=8
    )
    return out


@_lift.register_fake
def _(x: Tensor, kernel: Tensor, stride: Ints, padding: Ints) -> Tensor:
    return _empty(x, kernel, stride, padding)


@torch.library.custom_op("liespline::lift_weight_gradient", mutates_args=())
def _weight_gradient(grad: Tensor, x: Tensor, kernel: Tensor, stride: Ints, padding: Ints) -> Tensor:
    columns, shapes, tile = kernel.shape[0] * kernel.shape[1], _shapes(x, grad, stride, padding), _tile(kernel)
    grad = ordered(grad)
    lay = as_matrix(grad)
    if lay is None or lay.columns != columns:  # channels innermost, with elements among the rows
        grad = torch.empty_like(_empty(x, kernel, stride, padding)).copy_(grad)
        lay = as_matrix(grad)
    assert lay is not None
    share = triton.cdiv(triton.cdiv(lay.rows, _PROGRAMS), _ROWS) * _ROWS
    splits, inner = triton.cdiv(lay.rows, share), (kernel.shape[3], tile["BK"], tile["NP"])
    partial = torch.empty(splits, *inner, device=x.device, dtype=torch.float32)
    kernels.weight_gradient[(splits, tile["NP"] // tile["BN"])](
        _last(x), grad, partial, lay.rows, share, columns, lay.stride, *shapes, **tile, BM=_ROWS, num_warps=8
    )
    total = partial.sum(0)[:, : kernel.shape[2] * kernel.shape[4], :columns]
    total = total.unflatten(2, kernel.shape[:2]).unflatten(1, (kernel.shape[4], -1))  # (KH, KW, C, O, A)
    return torch.empty_like(kernel).copy_(total.permute(3, 4, 2, 0, 1))


@_weight_gradient.register_fake
def _(grad: Tensor, x: Tensor, kernel: Tensor, stride: Ints, padding: Ints) -> Tensor:
    return torch.empty_like(kernel)


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, kernel, ctx.stride, ctx.padding = inputs
    ctx.save_for_backward(x, kernel)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, kernel = ctx.saved_tensors
    if torch.is_grad_enabled():  # the gradient itself will be differentiated
        out = cuda.plain(x, kernel, tuple(ctx.stride), tuple(ctx.padding))
        return *cuda.again(out, (x, kernel), ctx.needs_input_grad[:2], grad), None, None
    dx = dw = None
    if ctx.needs_input_grad[0]:  # an image's gradient is rarely wanted: by cuDNN
        dx, _ = cuda.operator_backward(grad, x, kernel, ctx.stride, ctx.padding, [True, False])
    if ctx.needs_input_grad[1]:
        dw = _weight_gradient(grad, x, kernel, ctx.stride, ctx.padding)
    return dx, dw, None, None


_lift.register_autograd(_backward, setup_context=_save)


def _empty(x: Tensor, kernel: Tensor, stride: Ints, padding: Ints) -> Tensor:
    edges = zip(x.shape[2:], kernel.shape[3:], stride, padding, strict=True)
    high, wide = ((n + 2 * p - k) // s + 1 for n, k, s, p in edges)
    outputs, elements = kernel.shape[:2]
    columns = outputs * elements
    strides = (high * wide * columns, elements, 1, wide * columns, columns)
    return x.new_empty_strided((x.shape[0], outputs, elements, high, wide), strides)


def _shapes(x: Tensor, out: Tensor, stride: Ints, padding: Ints) -> tuple[int, ...]:
    return (*x.shape[2:], *out.shape[3:], *stride, *padding)


def _tile(kernel: Tensor) -> dict[str, int]:
    columns, (channels, high, wide) = kernel.shape[0] * kernel.shape[1], kernel.shape[2:]
    block = min(max(triton.next_power_of_2(columns), 16), 256)
    inner = max(triton.next_power_of_2(channels * wide), 16)
    return {"C": channels, "KH": high, "KW": wide, "BK": inner, "BN": block, "NP": triton.cdiv(columns, block) * block}


def _last(x: Tensor) -> Tensor:
    return x.movedim(1, -1).contiguous()
