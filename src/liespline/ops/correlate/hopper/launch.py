"""Launching the Hopper kernels: fields (B, D, H, W, R, C), kernels (O, A, C, T, KD, KH, KW), lines (A·T)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from ...._check import Size
from . import line_kernels, pack_kernels, slab_kernels, weight_kernels
from .tiles import Slab, aligned, covers, padded, slab, tile, weight_tile


class Placed(NamedTuple):
    """A cover on a device."""

    starts: Tensor  # (A, S) first channels
    entries: Tensor  # (A, S·width), −1 where nothing is met
    width: int


def forward(x: Tensor, kernel: Tensor, table: Tensor, lines: Size, size: list[int], padding: list[int]) -> Tensor:
    """Correlate each element's fields with its blocks -> (B, *size, A, O)."""
    placed = views(table, lines, x.shape[4], *kernel.shape[:3])[0]
    return _correlate(x, kernel, placed, size, padding, False)


def input_gradient(
    grad: Tensor, kernel: Tensor, table: Tensor, lines: Size, size: list[int], fields: int, padding: list[int]
) -> Tensor:
    """The same correlation the other way, what each field's readers send back -> (B, *size, fields, C)."""
    placed = views(table, lines, fields, *kernel.shape[:3])[1]
    borders = [k - 1 - p for k, p in zip(kernel.shape[4:], padding, strict=True)]
    return _correlate(grad, kernel, placed, size, borders, True)


def weight_gradient(x: Tensor, grad: Tensor, found: Tensor, table: Tensor, lines: Size, padding: list[int]) -> None:
    """Fill `found` with the kernel's gradient; its taps are evenly apart in memory."""
    flat, window = found.flatten(4), found.shape[4:]
    outputs, elements, channels, count, _ = flat.shape
    if not grad.numel():
        found.zero_()
        return
    _, _, placed, places = views(table, lines, x.shape[4], outputs, elements, channels)
    spans, kc, op = placed.starts.shape[1], placed.width, aligned(outputs)
    t = weight_tile(len(x), grad.shape[1], x.shape[3], tuple(window), elements, spans, kc, outputs)
    box = _box(t.columns + window[2] - 1)
    x_desc = _descriptor(x, [1, t.columns, t.planes, t.images, kc])
    g_desc = _descriptor(grad, [1, box, t.planes, t.images, op])
    tiles_w, tiles_d = -(-x.shape[3] // t.columns), -(-grad.shape[1] // t.planes)
    steps = tiles_w * tiles_d * grad.shape[2] * -(-len(x) // t.images)
    share = -(-steps // t.splits)
    splits = -(-steps // share)
    m = t.blocks * kc
    partial = torch.empty(splits, elements, t.groups, window[2], m, op, device=x.device, dtype=torch.float32)
    weight_kernels.correlate_weight[(splits * elements * t.groups,)](
        x_desc, g_desc, placed.starts, partial, elements, t.groups, steps, share, tiles_w, grad.shape[2], tiles_d,
        *padding,
        S=spans, KH=window[1], KW=window[2], OUT=outputs, OP=op, MB=t.blocks, WT=t.columns, PT=t.planes, BB=t.images,
        KC=kc, WB=box, STAGES=t.stages, KEEP=t.keep, num_warps=8, maxnreg=168,
    )  # fmt: skip
    pack_kernels.unpack[(elements * window.numel(), -(-count * channels // 32))](
        partial, places, flat, splits, partial.stride(0),
        flat.stride(1), flat.stride(3), flat.stride(2), flat.stride(4), flat.stride(0),
        T=count, C=channels, S=spans, LINES=window[0] * window[1], KW=window[2], GROUPS=t.groups, MB=t.blocks, KC=kc,
        OUT=outputs, OP=op, BK=32,
    )  # fmt: skip


@lru_cache(maxsize=256)
def views(
    table: Tensor, lines: Size, fields: int, outputs: int, elements: int, channels: int
) -> tuple[Placed, Placed, Placed, Tensor]:
    """The parts of `tiles.tables`: covers of the three passes, and the places of all blocks and channels."""
    found, start = [], 0
    for covered in covers(lines, elements, fields, channels, outputs):
        rows, spans = len(covered.starts), len(covered.starts[0])
        middle, end = start + rows * spans, start + rows * spans * (1 + covered.width)
        found.append(Placed(table[start:middle].view(rows, spans), table[middle:end].view(rows, -1), covered.width))
        start = end
    forward, back, weight = found
    return forward, back, weight, table[start:].view(elements, -1)


def _correlate(x: Tensor, kernel: Tensor, placed: Placed, size: list[int], padding: list[int], back: bool) -> Tensor:
    elements, spans = placed.starts.shape
    flat, (kd, kh, kw) = kernel.flatten(4), kernel.shape[4:]
    inner, outer = (0, 2) if back else (2, 0)  # the kernel's axes of what is read and of what is written
    outputs, kc, op = flat.shape[outer], placed.width, padded(flat.shape[outer])
    out = x.new_empty(len(x), *size, elements, outputs)
    if not out.numel():
        return out
    s = slab(len(x), tuple(size), (kd, kh, kw), outputs, kc)
    t = tile(len(x), tuple(size), kw, elements, outputs, kc)
    lines = 2 if s else t.lines
    n, steps = lines * op, (kh + lines - 1) * spans
    rows = kw * n * steps if s is None else -(-(kh + 1) * kw * n // 256) * 256 * spans  # of a plane
    line = (rows // (kh + lines - 1), kw * n) if s is None else (kw * n, rows // spans)
    packed = x.new_empty(elements * kd * rows, kc)
    pack_kernels.pack[(elements * kd * steps, kw)](
        flat, placed.entries, packed,
        flat.stride(1), flat.stride(3), flat.stride(inner), flat.stride(4), flat.stride(outer),
        rows * kc, line[0] * kc, line[1] * kc,
        T=flat.shape[3], C=flat.shape[inner], S=spans, KD=kd, KH=kh, KW=kw, LINES=lines, OUT=outputs, OP=op, KC=kc,
        FLIP=back,
    )  # fmt: skip
    if s is not None:
        _slab(x, packed, placed.starts, out, size, (kd, kh, kw), padding, s, rows // spans)
        return out
    box = _box(t.columns + kw - 1)
    x_desc = _descriptor(x, [1, box, t.planes, t.images, kc])
    w_desc = TensorDescriptor(packed, list(packed.shape), [kc, 1], [n, kc], _swizzled(kc, 2))
    counts = _counts(size, (t.planes, t.lines, t.columns))
    count = elements * math.prod(counts) * -(-len(x) // t.images)
    line_kernels.correlate[(min(t.each * _multiprocessors(x.device), count),)](
        x_desc, w_desc, placed.starts, out, elements, len(x), *size, counts[0], counts[2], counts[1], *padding,
        *out.stride()[:5], count, x.shape[2],
        S=spans, KD=kd, KH=kh, KW=kw, LINES=t.lines, OUT=outputs, OP=op, WT=t.columns, PT=t.planes, BB=t.images,
        KC=kc, WB=box, STAGES=t.stages, num_warps=8, maxnreg=t.registers,
    )  # fmt: skip
    return out


def _slab(
    x: Tensor, packed: Tensor, starts: Tensor, out: Tensor, size: list[int], window: Size, padding: list[int],
    s: Slab, rows: int,
) -> None:  # fmt: skip
    elements, spans = starts.shape
    x_desc = _descriptor(x, [2, 16, s.planes, s.images, 16])
    w_desc = TensorDescriptor(packed, list(packed.shape), [16, 1], [256, 16], _swizzled(16, 2))
    counts = _counts(size, (s.planes, 2 * s.pairs, 8))
    count = elements * math.prod(counts) * -(-len(x) // s.images)
    slab_kernels.correlate[(min(_multiprocessors(x.device), count),)](
        x_desc, w_desc, starts, out, elements, len(x), *size, counts[0], counts[2], counts[1], *padding,
        *out.stride()[:5], count,
        S=spans, KD=window[0], KH=window[1], KW=window[2], PAIRS=s.pairs, OUT=out.shape[-1], WT=8, PT=s.planes,
        BB=s.images, WIDE=16, ROWS=rows, STAGES=2, num_warps=4, maxnreg=168,
    )  # fmt: skip


def _counts(size: list[int], units: Size) -> list[int]:
    return [-(-n // unit) for n, unit in zip(size, units, strict=True)]


@lru_cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


@lru_cache
def _swizzled(width: int, rank: int) -> gl.NVMMASharedLayout:
    """The order in which the copy engine leaves boxes whose innermost axis is so wide."""
    return gl.NVMMASharedLayout(width * 2, 16, rank)


def _descriptor(x: Tensor, box: list[int]) -> TensorDescriptor:
    """(B, D, H, W, R, C) seen as [H, W, D, B, R·C]; where an axis has one sample, its step is never taken."""
    order, fields = (2, 3, 1, 0), x.shape[4] * x.shape[5]
    shape = [x.shape[i] for i in order] + [fields]
    strides = [x.stride(i) if x.shape[i] > 1 else -(-fields // 8) * 8 for i in order] + [1]
    return TensorDescriptor(x, shape, strides, box, _swizzled(box[-1], 5))


def _box(columns: int) -> int:
    return next(n for n in (4, 2, 1) if columns % n == 0)
