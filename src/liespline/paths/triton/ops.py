"""The Triton correlation as operators of torch, so that autograd, autocast and torch.compile know it."""

from typing import Any

import torch
from torch import Tensor

from liespline.paths.plan import Table
from liespline.paths.triton import launch

Size = tuple[int, ...]


def gathered(fields: Tensor, kernel: Tensor, table: Table, stride: Size, padding: Size) -> Tensor:
    """Correlate gathered fields: the arguments and the result of `banded.grouped`, one element a group."""
    if torch.is_autocast_enabled(fields.device.type):
        dtype = torch.get_autocast_dtype(fields.device.type)
        fields, kernel = fields.to(dtype), kernel.to(dtype)
    missing = 3 - len(stride)
    x = fields.movedim(1, -1).reshape(
        fields.shape[0], fields.shape[2], *(1,) * missing, *fields.shape[3:], fields.shape[1]
    )
    blocks = kernel.movedim((1, 3), (0, 1)).movedim((2, 3), (-1, -2))  # (A, T, *W, C, O)
    blocks = blocks.reshape(*blocks.shape[:2], *(1,) * missing, *blocks.shape[2:])
    out: Tensor = _correlate(x, blocks, *table.tensors, [1] * missing + list(stride), [0] * missing + list(padding))
    return out.reshape(*out.shape[:2], *out.shape[2 + missing : -1], out.shape[-1]).movedim(-1, 1)


def _size(x: Tensor, blocks: Tensor, stride: list[int], padding: list[int]) -> Size:
    edges = zip(x.shape[2:5], blocks.shape[2:5], stride, padding, strict=True)
    return tuple((n + 2 * p - k) // s + 1 for n, k, s, p in edges)


@torch.library.custom_op("liespline::gathered", mutates_args=())
def _correlate(
    x: Tensor,
    blocks: Tensor,
    fields: Tensor,
    counts: Tensor,
    readers: Tensor,
    places: Tensor,
    reads: Tensor,
    stride: list[int],
    padding: list[int],
) -> Tensor:
    size = _size(x, blocks, stride, padding)
    return launch.correlate(x, blocks, fields, counts, size, tuple(stride), tuple(padding))


@_correlate.register_fake
def _(x: Tensor, blocks: Tensor, *rest: Any) -> Tensor:
    return x.new_empty(x.shape[0], blocks.shape[0], *_size(x, blocks, *rest[-2:]), blocks.shape[-1])


@torch.library.custom_op("liespline::gathered_input_gradient", mutates_args=())
def _input_gradient(
    grad: Tensor,
    blocks: Tensor,
    fields: Tensor,
    counts: Tensor,
    readers: Tensor,
    places: Tensor,
    reads: Tensor,
    size: list[int],
    stride: list[int],
    padding: list[int],
) -> Tensor:
    table = Table(fields, counts, readers, places, reads)
    return launch.input_gradient(grad, blocks, table, tuple(size), tuple(stride), tuple(padding))


@_input_gradient.register_fake
def _(grad: Tensor, blocks: Tensor, *rest: Any) -> Tensor:
    readers, size = rest[2], rest[-3]
    return grad.new_empty(grad.shape[0], readers.shape[0], *size, blocks.shape[-2])


@torch.library.custom_op("liespline::gathered_weight_gradient", mutates_args=())
def _weight_gradient(
    x: Tensor, grad: Tensor, fields: Tensor, window: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    found = launch.weight_gradient(x, grad, fields, tuple(window), tuple(stride), tuple(padding))
    return found.to(x.dtype, memory_format=torch.contiguous_format)


@_weight_gradient.register_fake
def _(x: Tensor, grad: Tensor, fields: Tensor, window: list[int], *rest: Any) -> Tensor:
    return x.new_empty(*fields.shape, *window, x.shape[-1], grad.shape[-1])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.stride, ctx.padding = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, blocks, *table = ctx.saved_tensors
    x_grad = blocks_grad = None
    if ctx.needs_input_grad[0]:
        size = list(x.shape[2:5])
        x_grad = _input_gradient(grad, blocks, *table, size, ctx.stride, ctx.padding)
    if ctx.needs_input_grad[1]:
        window = list(blocks.shape[2:5])
        blocks_grad = _weight_gradient(x, grad, table[0], window, ctx.stride, ctx.padding)
    return x_grad, blocks_grad, *(None,) * 7


_correlate.register_autograd(_backward, setup_context=_remember)
