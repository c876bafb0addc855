"""Launching the Hopper kernels: fields (B, D, H, W, R, C), kernels (O, A, C, T, KD, KH, KW), lines (A·T)."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from ...._check import Size
from ...layout import by_axis
from . import line_kernels, pack_kernels, slab_kernels, weight_kernels
from .stages import MOST_KEPT
from .tiles import Slab, Tile, aligned, covers, padded, slab, tile, weight_tile


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
    if not grad.numel():
        found.zero_()
        return
    outputs, elements, channels, count = found.shape[:4]
    window, (size_d, size_h) = tuple(found.shape[4:]), grad.shape[1:3]
    _, _, placed, places = views(table, lines, x.shape[4], outputs, elements, channels)
    spans, kc, op = placed.starts.shape[1], placed.width, aligned(outputs)
    t = weight_tile(len(x), size_d, x.shape[3], window, elements, spans, kc, outputs)
    box = _box(t.columns + window[2] - 1)
    tiles_w, tiles_d = _ceil(x.shape[3], t.columns), _ceil(size_d, t.planes)
    steps = tiles_w * tiles_d * size_h * _ceil(len(x), t.images)
    share = _ceil(steps, t.splits)
    splits = _ceil(steps, share)
    partial = torch.empty(
        splits, elements, t.groups, window[2], t.blocks * kc, op, device=x.device, dtype=torch.float32
    )
    flat = found.flatten(4)  # in place: taps are evenly apart
    both = {"S": spans, "KW": window[2], "OUT": outputs, "OP": op, "MB": t.blocks, "KC": kc}
    weight_kernels.correlate_weight[(splits * elements * t.groups,)](
        x_desc=_descriptor(x, [1, t.columns, t.planes, t.images, kc]),
        g_desc=_descriptor(grad, [1, box, t.planes, t.images, op]),
        starts=placed.starts, partial=partial, elements=elements, groups=t.groups, places=steps, share=share,
        tiles_w=tiles_w, size_h=size_h, tiles_d=tiles_d, **by_axis("pad", padding), **both,
        KH=window[1], WT=t.columns, PT=t.planes, BB=t.images, WB=box, STAGES=t.stages, KEEP=min(t.keep, MOST_KEPT),
        num_warps=8, maxnreg=168,
    )  # fmt: skip
    pack_kernels.unpack[(elements * math.prod(window), _ceil(count * channels, 32))](
        partial=partial, places=places, out=flat, splits=splits, split_stride=partial.stride(0),
        **_kernel_steps(flat, 2, 0), **both, T=count, C=channels, LINES=window[0] * window[1], GROUPS=t.groups, BK=32,
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
    elements, outputs, window = len(placed.starts), kernel.shape[2 if back else 0], tuple(kernel.shape[4:])
    out = x.new_empty(len(x), *size, elements, outputs)
    if not out.numel():
        return out
    own = slab(len(x), tuple(size), window, outputs, placed.width)
    if own is None:
        by = tile(len(x), tuple(size), window[2], elements, outputs, placed.width)
        _by_lines(x, kernel, placed, out, padding, by, back)
    else:
        _by_slabs(x, kernel, placed, out, padding, own, back)
    return out


def _by_lines(x: Tensor, kernel: Tensor, placed: Placed, out: Tensor, padding: list[int], t: Tile, back: bool) -> None:
    spans, (kd, kh, kw), kc = placed.starts.shape[1], kernel.shape[4:], placed.width
    n = t.lines * padded(out.shape[-1])
    # Rows are (plane, line, span, tap, column).
    packed = _packed(x, kernel, placed, t.lines, kw * n * spans, kw * n, kw * n * spans * (kh + t.lines - 1), back)
    box = _box(t.columns + kw - 1)
    tiles = _tiles(x, out, t.planes, t.lines, t.columns, t.images)
    line_kernels.correlate[(min(t.each * _multiprocessors(x.device), tiles["tiles"]),)](
        x_desc=_descriptor(x, [1, box, t.planes, t.images, kc]),
        w_desc=TensorDescriptor(packed, list(packed.shape), [kc, 1], [n, kc], _swizzled(kc, 2)),
        starts=placed.starts, **_sizes(out, padding), **tiles, height=x.shape[2],
        S=spans, KD=kd, KH=kh, KW=kw, LINES=t.lines, OUT=out.shape[-1], OP=n // t.lines, WT=t.columns, PT=t.planes,
        BB=t.images, KC=kc, WB=box, STAGES=t.stages, num_warps=8, maxnreg=t.registers,
    )  # fmt: skip


def _by_slabs(x: Tensor, kernel: Tensor, placed: Placed, out: Tensor, padding: list[int], s: Slab, back: bool) -> None:
    spans, (kd, kh, kw), n = placed.starts.shape[1], kernel.shape[4:], 2 * padded(out.shape[-1])
    # Rows are (plane, span, line, tap, column), and unused ones up to a whole box.
    rows = _ceil((kh + 1) * kw * n, 256) * 256
    packed = _packed(x, kernel, placed, 2, kw * n, rows, rows * spans, back)
    tiles = _tiles(x, out, s.planes, 2 * s.pairs, 8, s.images)
    slab_kernels.correlate[(min(_multiprocessors(x.device), tiles["tiles"]),)](
        x_desc=_descriptor(x, [2, 16, s.planes, s.images, 16]),
        w_desc=TensorDescriptor(packed, list(packed.shape), [16, 1], [256, 16], _swizzled(16, 2)),
        starts=placed.starts, **_sizes(out, padding), **tiles,
        S=spans, KD=kd, KH=kh, KW=kw, PAIRS=s.pairs, OUT=out.shape[-1], WT=8, PT=s.planes, BB=s.images, WIDE=16,
        ROWS=rows, STAGES=2, num_warps=4, maxnreg=168,
    )  # fmt: skip


def _packed(
    x: Tensor, kernel: Tensor, placed: Placed, lines: int, line: int, span: int, plane: int, back: bool
) -> Tensor:
    """The kernel in rows of KC channels, for products of `lines` output lines; a line, span and plane take so many."""
    (elements, spans), (kd, kh, kw) = placed.starts.shape, kernel.shape[4:]
    inner, outer = (0, 2) if back else (2, 0)  # the kernel's axes of what is read and of what is written
    flat, outputs = kernel.flatten(4), kernel.shape[outer]
    out = x.new_empty(elements * kd * plane, placed.width)
    pack_kernels.pack[(elements * kd * (kh + lines - 1) * spans, kw)](
        kernel=flat, entries=placed.entries, out=out, **_kernel_steps(flat, inner, outer),
        plane_stride=plane * placed.width, line_stride=line * placed.width, span_stride=span * placed.width,
        T=kernel.shape[3], C=kernel.shape[inner], S=spans, KD=kd, KH=kh, KW=kw, LINES=lines, OUT=outputs,
        OP=padded(outputs), KC=placed.width, FLIP=back,
    )  # fmt: skip
    return out


# ---- what kernels are told, by the names of their arguments ----


def _sizes(out: Tensor, padding: list[int]) -> dict[str, Any]:
    """The result (B, D, H, W, A, O) by its steps, and the border."""
    own = {"out": out, "batch": len(out), "elements": out.shape[4]}
    sizes = by_axis("size", out.shape[1:4]) | by_axis("pad", padding)
    return own | sizes | by_axis("out", out.stride()[:5], "bdhwa")


def _tiles(x: Tensor, out: Tensor, planes: int, lines: int, columns: int, images: int) -> dict[str, int]:
    """How many tiles along each axis, and in all."""
    counts = [_ceil(n, unit) for n, unit in zip(out.shape[1:4], (planes, lines, columns), strict=True)]
    return {"tiles": out.shape[4] * math.prod(counts) * _ceil(len(x), images)} | by_axis("tiles", counts)


def _kernel_steps(flat: Tensor, inner: int, outer: int) -> dict[str, int]:
    """The steps of a kernel (O, A, C, T, taps) in memory, from one channel read and one written to the next."""
    axes = {"element": 1, "block": 3, "channel": inner, "tap": 4, "output": outer}
    return {f"{name}_stride": flat.stride(axis) for name, axis in axes.items()}


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


def _ceil(value: int, unit: int) -> int:
    return -(-value // unit)
