"""Launching the Gluon kernels on tensors (B, D, H, W, A, C)."""

from dataclasses import dataclass

import line_kernels
import line_weight
import stream_kernels
import stream_weight
import torch
from spans import Spans, unpack
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

Size = tuple[int, ...]


@dataclass(frozen=True)
class Tile:
    """Columns, images, channels per step, output lines, stages, warps, planes and registers of a program.

    With `programs`, so many of them work through all tiles, and one warp of each does nothing but copy.
    """

    columns: int
    images: int
    channels: int
    lines: int = 1
    stages: int = 3
    warps: int = 8
    planes: int = 1
    registers: int | None = None
    programs: int = 0


@dataclass(frozen=True)
class WeightTile:
    """Columns, images, channels of a block, blocks of a program, splits of the sum, stages, warps and planes."""

    columns: int
    images: int
    channels: int
    blocks: int
    splits: int
    stages: int = 2
    warps: int = 8
    planes: int = 1
    registers: int | None = None  # with a number of them, one warp does nothing but copy
    keep: int = 0  # rows that wait in registers


def padded(outputs: int) -> int:
    """Outputs rounded up to a power of two that wgmma takes."""
    return max(16, 1 << (outputs - 1).bit_length())


def _descriptor(x: Tensor, box: list[int]) -> TensorDescriptor:
    # (B, D, H, W, A, C) seen as [H, W, D, B, A·C]
    order = (2, 3, 1, 0)
    shape = [x.shape[i] for i in order] + [x.shape[4] * x.shape[5]]
    strides = [x.stride(i) for i in order] + [1]
    return TensorDescriptor(x, shape, strides, box, gl.NVMMASharedLayout(box[-1] * 2, 16, 5))


def _box(columns: int) -> int:
    return next(n for n in (4, 2, 1) if columns % n == 0)


def correlate(x: Tensor, packed: Tensor, spans: Spans, size: Size, padding: Size, outputs: int, tile: Tile) -> Tensor:
    """x (B, D, H, W, R, C), packed kernels of `spans.pack` -> (B, *size, A, outputs)."""
    batch, elements = x.shape[0], packed.shape[0]
    kd, li, s, kw, n, kc = packed.shape[1:]
    out = x.new_empty(batch, *size, elements, outputs)
    box = _box(tile.columns + kw - 1)
    x_desc = _descriptor(x, [1, box, tile.planes, tile.images, kc])
    rows = packed.numel() // kc
    w_desc = TensorDescriptor(packed, [rows, kc], [kc, 1], [n, kc], gl.NVMMASharedLayout(kc * 2, 16, 2))
    tiles_b, tiles_w = -(-batch // tile.images), -(-size[2] // tile.columns)
    tiles_d, tiles_h = -(-size[0] // tile.planes), -(-size[1] // tile.lines)
    strides = out.stride()
    more = {} if tile.registers is None else {"maxnreg": tile.registers}
    tiles = elements * tiles_w * tiles_h * tiles_d * tiles_b
    kernel = line_kernels.correlate[(tiles,)]
    if tile.programs:
        kernel = stream_kernels.correlate[(min(tile.programs, tiles),)]
        more |= {"tiles": tiles, "height": x.shape[2]}
    kernel(
        x_desc, w_desc, spans.starts, out, elements, batch, *size, tiles_d, tiles_w, tiles_h, *padding, *strides[:5],
        S=s, KD=kd, KH=li - tile.lines + 1, KW=kw, LINES=tile.lines, OUT=outputs, OP=n // tile.lines,
        WT=tile.columns, PT=tile.planes, BB=tile.images, KC=kc, WB=box, STAGES=tile.stages, num_warps=tile.warps,
        **more,
    )  # fmt: skip
    return out


def weight_gradient(x: Tensor, grad: Tensor, spans: Spans, window: Size, padding: Size, tile: WeightTile) -> Tensor:
    """x (B, D, H, W, R, C), grad (B, D, H, W, A, O) -> (A, T, *window, C, O) in float32."""
    elements, s = spans.starts.shape
    outputs, op, kc = grad.shape[-1], padded(grad.shape[-1]), tile.channels
    groups = -(-window[0] * window[1] * s // tile.blocks)
    box = _box(tile.columns + window[2] - 1)
    x_desc = _descriptor(x, [1, tile.columns, tile.planes, tile.images, kc])
    g_desc = _descriptor(grad, [1, box, tile.planes, tile.images, op])
    tiles_w = -(-x.shape[3] // tile.columns)
    tiles_d = -(-grad.shape[1] // tile.planes)
    places = tiles_w * tiles_d * grad.shape[2] * -(-x.shape[0] // tile.images)
    share = -(-places // tile.splits)
    splits = -(-places // share)
    m = tile.blocks * kc
    partial = torch.empty(splits, elements, groups, window[2], m, op, device=x.device, dtype=torch.float32)
    more = {} if tile.registers is None else {"maxnreg": tile.registers, "KEEP": tile.keep}
    kernel = line_weight.correlate_weight if tile.registers is None else stream_weight.correlate_weight
    kernel[(splits * elements * groups,)](
        x_desc, g_desc, spans.starts, partial, elements, groups, places, share, tiles_w, grad.shape[2],
        tiles_d, *padding,
        S=s, KH=window[1], KW=window[2], OUT=outputs, OP=op, MB=tile.blocks, WT=tile.columns, PT=tile.planes,
        BB=tile.images, KC=kc, WB=box, STAGES=tile.stages, num_warps=tile.warps, **more,
    )  # fmt: skip
    sums = partial[0] if splits == 1 else partial.sum(0)
    return unpack(sums, spans, window[0], window[1], x.shape[-1], outputs)
