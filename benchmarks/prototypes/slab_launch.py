"""Launching `slab_kernels` on tensors (B, D, H, W, A, C) with at most 16 outputs per element."""

import slab_kernels
import torch
from line_launch import _descriptor
from spans import Spans
from torch import Tensor
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

Size = tuple[int, ...]


def pack(packed: Tensor) -> Tensor:
    """Kernels of `spans.pack` for two lines, (A, KD, KH + 1, S, KW, 32, 16) -> (A, KD, S, rows, 16), rows of 256."""
    rows = packed.transpose(2, 3).flatten(3, 5)
    return torch.nn.functional.pad(rows, (0, 0, 0, -rows.shape[3] % 256))


def correlate(
    x: Tensor, packed: Tensor, spans: Spans, size: Size, padding: Size, outputs: int, window: Size, *,
    columns: int, planes: int, images: int, pairs: int, programs: int, registers: int = 168, stages: int = 2,
) -> Tensor:  # fmt: skip
    """x (B, D, H, W, R, C), kernels of `pack` -> (B, *size, A, outputs)."""
    elements, kd, s, rows = packed.shape[:4]
    wide = 1 << (columns + window[2] - 2).bit_length()
    out = x.new_empty(len(x), *size, elements, outputs)
    x_desc = _descriptor(x, [2, wide, planes, images, 16])
    layout = gl.NVMMASharedLayout(32, 16, 2)
    w_desc = TensorDescriptor(packed, [packed.numel() // 16, 16], [16, 1], [256, 16], layout)
    tiles_d, tiles_h, tiles_w = -(-size[0] // planes), -(-size[1] // (2 * pairs)), -(-size[2] // columns)
    tiles = elements * tiles_d * tiles_h * tiles_w * -(-len(x) // images)
    slab_kernels.correlate[(min(programs, tiles),)](
        x_desc, w_desc, spans.starts, out, elements, len(x), *size, tiles_d, tiles_w, tiles_h, *padding,
        *out.stride()[:5], tiles,
        S=s, KD=kd, KH=window[1], KW=window[2], PAIRS=pairs, OUT=outputs, WT=columns, PT=planes, BB=images, WIDE=wide,
        ROWS=rows, STAGES=stages, num_warps=columns * planes * images // 16, maxnreg=registers,
    )  # fmt: skip
    return out
