"""The banded correlation by Triton kernels, as operators of torch that autograd and torch.compile know.

This file can be read without Triton; `triton_kernels` is imported when a kernel is first launched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..layout import by_axis, output_size
from ..operator import Differentiable, Gradients, Operator, on_its_device
from ..path import Path, Question
from ..plan import Keep, Part
from ..trust import KINDS, Kernels, drawn, off

MOST_TAPS = 20  # along the last axis: more sums than that leave the registers
_PROGRAMS = 1024  # programs that keep the device busy: the sum over samples is split until there are so many
_STAGE_BYTES = 64 * 1024  # shared memory for the loads in flight, so that two programs fit a multiprocessor
_WIDEST = 320  # columns of sums that fit the registers


def available(device: torch.device, dtype: torch.dtype) -> bool:
    """Say whether these kernels take such numbers: on a CUDA device since Ampere, or in Triton's interpreter."""
    return not off("triton", device, dtype)


def price(q: Question) -> float | None:
    """The blocks alone, read where they are, in whole tiles; and launches, which a compiled network does not pay."""
    taken = q.group == 1 and not q.transformed and (not q.window or q.window[-1] <= MOST_TAPS)
    if not taken or not available(q.device, q.dtype):
        return None
    if not q.cuda or q.exact:  # interpreted, or where cuDNN would be as exact
        return math.inf
    terms = q.reads * math.prod(q.window) * (1.4 * _tiles(q.inputs[0]) + 18)
    launch = 0.0 if q.traced else 7e10 / max(q.batch * math.prod(q.space), 1)
    return q.elements * _tiles(q.outputs) * (terms + 2300) + launch


def _tiles(channels: int) -> int:
    return _ceil(channels, block(channels)) * block(channels)


def gathered(fields: Tensor, blocks: Tensor, part: Part, _: int, stride: Size, padding: Size, __: Keep) -> Tensor:
    """Correlate gathered fields (B, C, R, *space) with blocks (O, A, C, width, *W) -> (B, O, A, *space)."""
    table, missing = part.tables[0], 3 - len(stride)
    kernel = blocks.to(fields.dtype)
    x = fields.movedim(1, -1).reshape(
        fields.shape[0], fields.shape[2], *(1,) * missing, *fields.shape[3:], fields.shape[1]
    )
    blocks = kernel.movedim((1, 3), (0, 1)).movedim((2, 3), (-1, -2))  # (A, T, *W, C, O)
    blocks = blocks.reshape(*blocks.shape[:2], *(1,) * missing, *blocks.shape[2:])
    out: Tensor = correlate(x, blocks, *table[:5], [1] * missing + list(stride), [0] * missing + list(padding))
    return out.reshape(*out.shape[:2], *out.shape[2 + missing : -1], out.shape[-1]).movedim(-1, 1)


PATH = Path("triton", price, gathered, channels_last=True)


# ---- operators; fields x (B, R, D, H, W, C), blocks (A, T, KD, KH, KW, C, O), results (B, A, D, H, W, O) ----


def _forward(
    x: Tensor, blocks: Tensor, fields: Tensor, counts: Tensor, readers: Tensor, places: Tensor, reads: Tensor,
    stride: list[int], padding: list[int],
) -> Tensor:  # fmt: skip
    return _launch(x, blocks, fields, counts, _size(x, blocks, stride, padding), stride, padding)


def _to_input(
    grad: Tensor, blocks: Tensor, readers: Tensor, places: Tensor, reads: Tensor,
    size: list[int], stride: list[int], padding: list[int],
) -> Tensor:  # fmt: skip
    # The same correlation the other way: what each field's readers send back.
    if any(s > 1 for s in stride):
        spread = [(n - 1) * s + 1 for n, s in zip(grad.shape[2:5], stride, strict=True)]
        sparse = grad.new_zeros(*grad.shape[:2], *spread, grad.shape[-1])
        sparse[:, :, :: stride[0], :: stride[1], :: stride[2]] = grad
        grad = sparse
    turned = blocks.flatten(0, 1)[places].flip(2, 3, 4).mT
    borders = [k - 1 - p for k, p in zip(blocks.shape[2:5], padding, strict=True)]
    return _launch(grad, turned, readers, reads, size, [1, 1, 1], borders)


def _to_weight(
    x: Tensor, grad: Tensor, fields: Tensor, window: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    found = _launch_weight(x, grad, fields, window, stride, padding)
    return found.to(x.dtype).contiguous()  # .to(memory_format=…) leaves what has its dtype already as it lies


def _fake_forward(x: Tensor, blocks: Tensor, *rest: Any) -> Tensor:
    return x.new_empty(x.shape[0], blocks.shape[0], *_size(x, blocks, *rest[-2:]), blocks.shape[-1])


def _fake_to_input(
    grad: Tensor, blocks: Tensor, readers: Tensor, places: Tensor, reads: Tensor, size: Any, *rest: Any
) -> Tensor:
    return grad.new_empty(grad.shape[0], readers.shape[0], *size, blocks.shape[-2])


def _fake_to_weight(x: Tensor, grad: Tensor, fields: Tensor, window: list[int], *rest: Any) -> Tensor:
    return x.new_empty(*fields.shape, *window, x.shape[-1], grad.shape[-1])


_input_gradient = Operator(
    "gathered_input_gradient(Tensor grad, Tensor blocks, Tensor readers, Tensor places, Tensor reads, SymInt[] size, "
    "SymInt[] stride, SymInt[] padding) -> Tensor",
    _to_input, _fake_to_input,
)  # fmt: skip
_weight_gradient = Operator(
    "gathered_weight_gradient(Tensor x, Tensor grad, Tensor fields, SymInt[] window, SymInt[] stride, "
    "SymInt[] padding) -> Tensor",
    _to_weight, _fake_to_weight,
)  # fmt: skip


def _gradients(
    needs: Sequence[bool], grad: Tensor, x: Tensor, blocks: Tensor, fields: Tensor, counts: Tensor, readers: Tensor,
    places: Tensor, reads: Tensor, stride: list[int], padding: list[int],
) -> Gradients:  # fmt: skip
    size, window = list(x.shape[2:5]), list(blocks.shape[2:5])
    return (
        _input_gradient(grad, blocks, readers, places, reads, size, stride, padding) if needs[0] else None,
        _weight_gradient(x, grad, fields, window, stride, padding) if needs[1] else None,
    )


def _plain(x: Tensor, blocks: Tensor, fields: Tensor, *rest: Any) -> Tensor:
    """The same by torch's own operators."""
    stride, padding = rest[-2:]
    taken = x.index_select(1, fields.flatten()).movedim(-1, 2).flatten(1, 2)  # (B, A·T·C, D, H, W)
    weight = blocks.movedim((-1, -2), (1, 3)).flatten(2, 3).flatten(0, 1)  # (A·O, T·C, KD, KH, KW)
    out = F.conv3d(taken, weight, None, stride, padding, groups=len(blocks))
    return out.unflatten(1, (len(blocks), -1)).movedim(2, -1)


correlate = Differentiable(
    "gathered(Tensor x, Tensor blocks, Tensor fields, Tensor counts, Tensor readers, Tensor places, Tensor reads, "
    "SymInt[] stride, SymInt[] padding) -> Tensor",
    _forward, _fake_forward, plain=_plain, gradients=_gradients,
)  # fmt: skip


def _call(device: torch.device, dtype: torch.dtype) -> tuple[Differentiable, tuple[Any, ...]]:
    x, blocks = drawn(2, 4, 1, 9, 10, 16), drawn(4, 3, 1, 3, 3, 16, 16, seed=1)
    element = torch.arange(4)[:, None]
    fields, readers = (element + torch.tensor([-1, 0, 1])) % 4, (element + torch.tensor([1, 0, -1])) % 4
    counts, places = torch.full((4,), 3), 3 * readers + torch.arange(3)
    tables = [t.to(device) for t in (fields, counts, readers, places, counts)]
    return correlate, (x.to(device, dtype), blocks.to(device, dtype), *tables, [1, 1, 2], [0, 1, 1])


KINDS["triton"] = Kernels(
    "Triton kernels", (torch.float16, torch.bfloat16, torch.float32), "NVIDIA GPUs since Ampere",
    lambda found: found >= (8, 0), (_call,), (3, 4),  # before, tuples of constants have no entries
)  # fmt: skip


def _size(x: Tensor, blocks: Tensor, stride: list[int], padding: list[int]) -> list[int]:
    return output_size(x.shape[2:5], blocks.shape[2:5], stride, padding)


# ---- launches ----


class Tile(NamedTuple):
    """A program's share: rows × (taps · outputs) of sums, `inner` terms at a time; fitted on an H200."""

    rows: int
    outputs: int
    inner: int
    pieces: tuple[int, ...]  # powers of two that cover the columns
    stages: int


@cache
def _tile(channels: int, outputs: int, taps: int, dtype: torch.dtype) -> Tile:
    """The tile of a correlation with `taps` samples along the last axis; also that of the input's gradient."""
    outputs = block(outputs, _WIDEST // taps)
    pieces, inner = _pieces(taps * outputs, outputs), block(channels, 128 // dtype.itemsize)
    rows = 128 if sum(pieces) <= 192 and taps <= 32 else 64
    stage = (rows + sum(pieces)) * inner * dtype.itemsize
    return Tile(rows, outputs, inner, pieces, min(max(_STAGE_BYTES // stage, 2), 5))


@cache
def _weight_tile(outputs: int, taps: int, dtype: torch.dtype) -> Tile:
    """The tile of the kernel's gradient: rows are inputs, and `inner` counts samples."""
    outputs = block(outputs, 160 // taps)
    pieces = _pieces(taps * outputs, outputs)
    return Tile(128 if sum(pieces) <= 192 else 64, outputs, 128 // dtype.itemsize, pieces, 3)


def block(count: int, most: int = 64) -> int:
    """Return a power of two from 16 to 64: little of it wasted on `count`, but not small, which costs re-reading."""
    sizes = [size for size in (64, 32, 16) if size <= most] or [16]
    return min(sizes, key=lambda size: -(-count // size) * (size + 8))


def _pieces(columns: int, unit: int) -> tuple[int, ...]:
    # The binary digits of the number of columns, none below one output block nor above the widest instruction.
    pieces = []
    while columns > 0:
        pieces.append(max(unit, min(256, 1 << (columns.bit_length() - 1))))
        columns -= pieces[-1]
    return tuple(pieces)


@on_its_device
def _launch(
    x: Tensor, blocks: Tensor, lines: Tensor, counts: Tensor, size: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    elements, width, *window, _, outputs = blocks.shape
    out = x.new_empty(x.shape[0], elements, *size, outputs)
    if not out.numel():
        return out
    from . import triton_kernels as kernels  # here, since importing it needs Triton

    x = kernels.aligned(x)
    tile = _tile(x.shape[-1], outputs, window[2], x.dtype)
    wide = (size[2] - 1) * stride[2] + window[2]
    rows = x.shape[0] * size[0] * size[1] * wide
    count = _ceil(rows, tile.rows - window[2] + 1)
    kernels.correlate[(count * elements * _ceil(outputs, tile.outputs),)](
        x=x, weight=kernels.pack(blocks.to(x.dtype), x.shape[-1], tile), table=lines, counts=counts, out=out,
        rows=rows, tiles=count, elements=elements, width=width, wide=wide, **by_axis("x", kernels.eighths(x), "brdhw"),
        **by_axis("in", x.shape[2:5]), **by_axis("out", out.stride()[:5], "badhw"), **by_axis("size", size),
        **by_axis("stride", stride), **by_axis("pad", padding),
        C=x.shape[-1], N=outputs, KD=window[0], KH=window[1], KW=window[2], BC=tile.inner,
        Q=sum(tile.pieces), TILES_FIRST=tile.rows == 64, **kernels.options(tile, x),
    )  # fmt: skip
    return out


@on_its_device
def _launch_weight(
    x: Tensor, grad: Tensor, lines: Tensor, window: list[int], stride: list[int], padding: list[int]
) -> Tensor:
    channels, outputs = x.shape[-1], grad.shape[-1]
    if not grad.numel():
        return x.new_zeros(*lines.shape, *window, channels, outputs)
    from . import triton_kernels as kernels

    borders = [n for p in reversed(padding) for n in (p, p)]
    x = kernels.aligned(F.pad(x, (0, -channels % 8, *borders)) if any(padding) else x)
    grad = kernels.aligned(grad)
    elements, width = lines.shape
    tile = _weight_tile(outputs, window[2], x.dtype)
    size = grad.shape[2:5]
    wide = (size[2] - 1) * stride[2] + window[2]
    rows = x.shape[0] * size[0] * size[1] * wide
    columns = width * window[0] * window[1] * x.shape[-1]
    programs = _ceil(columns, tile.rows) * _ceil(grad.shape[-1], tile.outputs) * elements
    splits = min(max(_ceil(_PROGRAMS, programs), 1), _ceil(rows, 8 * tile.inner))
    share = _ceil(_ceil(rows, splits), tile.inner) * tile.inner
    partial = torch.empty(
        (splits, elements, width, window[0], window[1], x.shape[-1], window[2], grad.shape[-1]),
        device=x.device, dtype=torch.promote_types(x.dtype, torch.float32),
    )  # fmt: skip
    kernels.correlate_weight[(programs * splits,)](
        x=x, grad=grad, table=lines, partial=partial, rows=rows, split_rows=share, elements=elements, wide=wide,
        **by_axis("x", kernels.eighths(x), "brdhw"), **by_axis("g", kernels.eighths(grad), "badhw"),
        **by_axis("size", size), **by_axis("stride", stride),
        T=width, C=x.shape[-1], N=grad.shape[-1], KD=window[0], KH=window[1], KW=window[2], BP=tile.inner,
        **kernels.options(tile, x),
    )  # fmt: skip
    return partial.sum(0)[..., :channels, :, :outputs].transpose(-2, -3)


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)
