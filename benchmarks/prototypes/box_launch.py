"""Launching `box_kernels` on tensors (B, D, H, W, A, C), with tensor descriptors or with pointers."""

import box_kernels
import torch
import triton.language as tl
from spans import Spans
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

Size = tuple[int, ...]


def correlate(
    x: Tensor, packed: Tensor, spans: Spans, size: Size, padding: Size, outputs: int, *,
    columns: int, images: int, lines: int, boxes: bool, programs: int, stages: int = 3, warps: int = 8,
) -> Tensor:  # fmt: skip
    """x (B, D, H, W, R, C), packed kernels of `spans.pack` -> (B, *size, A, outputs)."""
    batch, elements = x.shape[0], packed.shape[0]
    kd, li, s, kw, n, kc = packed.shape[1:]
    out = x.new_empty(batch, *size, elements, outputs)
    channels = x.shape[4] * x.shape[5]
    samples, weight = x, packed
    if boxes:
        order = (1, 2, 3, 0)
        shape, strides = [x.shape[i] for i in order], [x.stride(i) for i in order]
        samples = TensorDescriptor(x, [*shape, channels], [*strides, 1], [1, 1, columns, images, kc])
        weight = TensorDescriptor(packed, [packed.numel() // kc, kc], [kc, 1], [n, kc])
    tiles_w, tiles_h = -(-size[2] // columns), -(-size[1] // lines)
    tiles = elements * tiles_w * tiles_h * size[0] * -(-batch // images)
    programs = min(programs, tiles)
    box_kernels.correlate[(programs,)](
        samples, weight, spans.starts, out, elements, batch, *x.shape[1:4], channels, *size, tiles, tiles_w, tiles_h,
        *padding, *x.stride()[:4], *out.stride()[:5],
        S=s, KD=kd, KH=li - lines + 1, KW=kw, LINES=lines, OUT=outputs, OP=n // lines, WT=columns, BT=images, KC=kc,
        BOX=boxes, SUMS=tl.float64 if x.dtype == torch.float64 else tl.float32, PROGRAMS=programs,
        num_stages=stages, num_warps=warps,
    )  # fmt: skip
    return out
