"""Launching the Hopper kernels: fields (B, D, H, W, R, C), kernels (O, A, C, T, KD, KH, KW), lines (A·T)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from ..sizes import Size
from . import line_kernels, pack_kernels, slab_kernels, weight_kernels
from .tiles import Slab, by_lines, cover, padded, read_by, slab, tile, weight_tile


class Placed(NamedTuple):
    """A cover on a device, and where in the kernel lies what its spans meet."""

    starts: Tensor  # (A, S) first channels
    offsets: Tensor  # (A, S·width), −1 where nothing is met
    width: int


class Blocks(NamedTuple):
    """Where in a cover, and where in the kernel, lies every channel of every block."""

    places: Tensor  # (A, T·C) span·width + channel, −1 where the block is not read
    offsets: Tensor  # (A, T·C)


def forward(x: Tensor, kernel: Tensor, lines: Size, size: list[int], padding: list[int]) -> Tensor:
    """Correlate each element's fields with its blocks -> (B, *size, A, O)."""
    flat = kernel.flatten(4)
    placed = _placed(lines, flat.shape, flat.stride(), x.device)
    return _correlate(x, flat, placed, kernel.shape[4:], size, padding, flat.stride(0), len(kernel), False)


def input_gradient(
    grad: Tensor, kernel: Tensor, lines: Size, size: list[int], fields: int, padding: list[int]
) -> Tensor:
    """The same correlation the other way, what each field's readers send back -> (B, *size, fields, C)."""
    flat = kernel.flatten(4)
    placed = _placed_back(lines, fields, flat.shape, flat.stride(), grad.device)
    borders = [k - 1 - p for k, p in zip(kernel.shape[4:], padding, strict=True)]
    return _correlate(grad, flat, placed, kernel.shape[4:], size, borders, flat.stride(2), flat.shape[2], True)


def weight_gradient(x: Tensor, grad: Tensor, found: Tensor, lines: Size, padding: list[int]) -> None:
    """Fill `found` with the kernel's gradient; its taps are evenly apart in memory."""
    flat, window = found.flatten(4), found.shape[4:]
    outputs, elements, channels = flat.shape[:3]
    covered = cover(by_lines(lines, elements), channels, 64 if padded(outputs) == 64 else 32)
    spans, kc, op = len(covered.starts[0]), covered.width, padded(outputs)
    blocks = _blocks(lines, kc, flat.shape, flat.stride(), x.device)
    starts = _starts(lines, elements, channels, kc, x.device)
    if not grad.numel():
        found.zero_()
        return
    t = weight_tile(len(x), grad.shape[1], x.shape[3], tuple(window), elements, spans, kc, outputs)
    box = _box(t.columns + window[2] - 1)
    x_desc = _descriptor(x, [1, t.columns, t.planes, t.images, kc])
    g_desc = _descriptor(grad, [1, box, t.planes, t.images, op])
    tiles_w, tiles_d = -(-x.shape[3] // t.columns), -(-grad.shape[1] // t.planes)
    places = tiles_w * tiles_d * grad.shape[2] * -(-len(x) // t.images)
    share = -(-places // t.splits)
    splits = -(-places // share)
    m = t.blocks * kc
    partial = torch.empty(splits, elements, t.groups, window[2], m, op, device=x.device, dtype=torch.float32)
    weight_kernels.correlate_weight[(splits * elements * t.groups,)](
        x_desc, g_desc, starts, partial, elements, t.groups, places, share, tiles_w, grad.shape[2], tiles_d, *padding,
        S=spans, KH=window[1], KW=window[2], OUT=outputs, OP=op, MB=t.blocks, WT=t.columns, PT=t.planes, BB=t.images,
        KC=kc, WB=box, STAGES=t.stages, KEEP=t.keep, num_warps=8, maxnreg=168,
    )  # fmt: skip
    count = blocks.places.shape[1]
    pack_kernels.unpack[(elements * window.numel(), -(-count // 32))](
        partial, blocks.places, blocks.offsets, flat, splits, partial.stride(0), flat.stride(4), flat.stride(0), count,
        S=spans, LINES=window[0] * window[1], KW=window[2], GROUPS=t.groups, MB=t.blocks, KC=kc, OUT=outputs, OP=op,
        BK=32,
    )  # fmt: skip


def _correlate(
    x: Tensor, flat: Tensor, placed: Placed, window: Size, size: list[int], padding: list[int],
    output_stride: int, outputs: int, flip: bool,
) -> Tensor:  # fmt: skip
    elements, spans = placed.starts.shape
    kc, op = placed.width, padded(outputs)
    kd, kh, kw = window
    out = x.new_empty(len(x), *size, elements, outputs)
    if not out.numel():
        return out
    s = slab(len(x), tuple(size), tuple(window), outputs, kc)
    t = tile(len(x), tuple(size), kw, elements, outputs, kc)
    lines = 2 if s else t.lines
    n, steps = lines * op, (kh + lines - 1) * spans
    rows = kw * n * steps if s is None else -(-(kh + 1) * kw * n // 256) * 256 * spans  # of a plane
    line = (rows // (kh + lines - 1), kw * n) if s is None else (kw * n, rows // spans)
    packed = x.new_empty(elements * kd * rows, kc)
    pack_kernels.pack[(elements * kd * steps, kw)](
        flat, placed.offsets, packed, flat.stride(4), output_stride, rows * kc, line[0] * kc, line[1] * kc,
        S=spans, KD=kd, KH=kh, KW=kw, LINES=lines, OUT=outputs, OP=op, KC=kc, FLIP=flip,
    )  # fmt: skip
    if s is not None:
        _slab(x, packed, placed.starts, out, size, window, padding, s, rows // spans)
        return out
    box = _box(t.columns + kw - 1)
    x_desc = _descriptor(x, [1, box, t.planes, t.images, kc])
    w_desc = TensorDescriptor(packed, list(packed.shape), [kc, 1], [n, kc], gl.NVMMASharedLayout(kc * 2, 16, 2))
    counts = _counts(size, (t.planes, t.lines, t.columns))
    tiles = elements * math.prod(counts) * -(-len(x) // t.images)
    line_kernels.correlate[(min(t.each * _multiprocessors(x), tiles),)](
        x_desc, w_desc, placed.starts, out, elements, len(x), *size, counts[0], counts[2], counts[1], *padding,
        *out.stride()[:5], tiles, x.shape[2],
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
    w_desc = TensorDescriptor(packed, list(packed.shape), [16, 1], [256, 16], gl.NVMMASharedLayout(32, 16, 2))
    counts = _counts(size, (s.planes, 2 * s.pairs, 8))
    tiles = elements * math.prod(counts) * -(-len(x) // s.images)
    slab_kernels.correlate[(min(_multiprocessors(x), tiles),)](
        x_desc, w_desc, starts, out, elements, len(x), *size, counts[0], counts[2], counts[1], *padding,
        *out.stride()[:5], tiles,
        S=spans, KD=window[0], KH=window[1], KW=window[2], PAIRS=s.pairs, OUT=out.shape[-1], WT=8, PT=s.planes,
        BB=s.images, WIDE=16, ROWS=rows, STAGES=2, num_warps=4, maxnreg=168,
    )  # fmt: skip


def _counts(size: list[int], units: Size) -> list[int]:
    return [-(-n // unit) for n, unit in zip(size, units, strict=True)]


def _multiprocessors(x: Tensor) -> int:
    return torch.cuda.get_device_properties(x.device).multi_processor_count


def _descriptor(x: Tensor, box: list[int]) -> TensorDescriptor:
    """(B, D, H, W, R, C) seen as [H, W, D, B, R·C]; where an axis has one sample, its step is never taken."""
    order, fields = (2, 3, 1, 0), x.shape[4] * x.shape[5]
    shape = [x.shape[i] for i in order] + [fields]
    strides = [x.stride(i) if x.shape[i] > 1 else -(-fields // 8) * 8 for i in order] + [1]
    return TensorDescriptor(x, shape, strides, box, gl.NVMMASharedLayout(box[-1] * 2, 16, 5))


def _box(columns: int) -> int:
    return next(n for n in (4, 2, 1) if columns % n == 0)


# ---- tables, made once for layers alike ----


@lru_cache(maxsize=256)
def _placed(lines: Size, shape: Size, strides: Size, device: torch.device) -> Placed:
    """What the spans of elements meet: for the kernel (O, A, C, T, taps), block (a, t) and input channel c."""
    _, elements, channels, _, _ = shape
    covered = cover(by_lines(lines, elements), channels)
    offsets = [
        [-1 if e < 0 else a * strides[1] + e % channels * strides[2] + e // channels * strides[3] for e in entries]
        for a, entries in enumerate(covered.entries)
    ]
    return Placed(_table(covered.starts, device), _table(offsets, device), covered.width)


@lru_cache(maxsize=256)
def _placed_back(lines: Size, fields: int, shape: Size, strides: Size, device: torch.device) -> Placed:
    """The same for the input's gradient: field r meets the blocks of its readers, and their outputs are channels."""
    outputs, elements = shape[:2]
    readers = read_by(by_lines(lines, elements), fields)
    reach = max(1, *(len(pairs) for pairs in readers))
    back = tuple(tuple(a for a, _ in pairs) + (-1,) * (reach - len(pairs)) for pairs in readers)
    covered = cover(back, outputs)
    offsets = []
    for pairs, entries in zip(readers, covered.entries, strict=True):
        blocks = [a * strides[1] + t * strides[3] for a, t in pairs]
        offsets.append([-1 if e < 0 else blocks[e // outputs] + e % outputs * strides[0] for e in entries])
    return Placed(_table(covered.starts, device), _table(offsets, device), covered.width)


@lru_cache(maxsize=256)
def _blocks(lines: Size, width: int, shape: Size, strides: Size, device: torch.device) -> Blocks:
    _, elements, channels, count, _ = shape
    covered = cover(by_lines(lines, elements), channels, width)
    places, offsets = [], []
    for a, entries in enumerate(covered.entries):
        line = [-1] * (count * channels)
        for place, entry in enumerate(entries):
            if entry >= 0:
                line[entry] = place
        places.append(line)
        offsets.append(
            [a * strides[1] + c * strides[2] + t * strides[3] for t in range(count) for c in range(channels)]
        )
    return Blocks(_table(places, device), _table(offsets, device))


@lru_cache(maxsize=256)
def _starts(lines: Size, elements: int, channels: int, widest: int, device: torch.device) -> Tensor:
    return _table(cover(by_lines(lines, elements), channels, widest).starts, device)


def _table(numbers: Any, device: torch.device) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32).to(device)
