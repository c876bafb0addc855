# mypy: ignore-errors
"""Two Triton kernels that bring sampled kernels into the order of the Hopper kernels, and their gradients back.

A sampled kernel (O, A, C, T, *W) may lie in memory in any order whose taps are evenly apart. What stands where is in
small tables of offsets, one line for each element: offset(span, channel), negative where nothing is read.
"""

import triton
import triton.language as tl


@triton.jit
def pack(
    kernel,
    offsets,  # (A, S·KC) where the block and channel of each place lie in the kernel
    out,  # (A, KD, KH + LINES − 1, S, KW, LINES·OP, KC), the first four by their strides
    tap_stride, output_stride, plane_stride, line_stride, span_stride,
    S: tl.constexpr, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, LINES: tl.constexpr, OUT: tl.constexpr,
    OP: tl.constexpr, KC: tl.constexpr, FLIP: tl.constexpr,
):  # fmt: skip
    """out[a,z,y,s,x,(l,o),k] = kernel[o, offset[a,s,k], tap (z, y − l, x)], the taps in reverse order with FLIP."""
    step = tl.program_id(0)
    x = tl.program_id(1)
    span = step % S
    line = (step // S) % (KH + LINES - 1)
    plane = (step // (S * (KH + LINES - 1))) % KD
    element = step // (S * (KH + LINES - 1) * KD)
    n = tl.arange(0, LINES * OP)
    y = line - n // OP
    tap = (plane * KH + y) * KW + x
    if FLIP:
        tap = KD * KH * KW - 1 - tap
    k = tl.arange(0, KC)
    offset = tl.load(offsets + (element * S + span) * KC + k)
    kept = ((y >= 0) & (y < KH) & (n % OP < OUT))[:, None] & (offset >= 0)[None, :]
    source = (n % OP) * output_stride + tap * tap_stride
    value = tl.load(kernel + source[:, None] + offset[None, :], mask=kept, other=0.0)
    place = (element * KD + plane).to(tl.int64) * plane_stride + line * line_stride + span * span_stride
    tl.store(out + place + x * (LINES * OP * KC) + n[:, None] * KC + k[None, :], value.to(out.dtype.element_ty))


@triton.jit
def unpack(
    partial,  # (splits, A, groups, KW, MB·KC, OP)
    places,  # (A, BLOCKS) span·KC + channel of each block and channel of the kernel, in the order of `offsets`
    offsets,  # (A, BLOCKS) where they lie in the kernel
    out,  # as the kernel
    splits, split_stride, tap_stride, output_stride, count,
    S: tl.constexpr, LINES: tl.constexpr, KW: tl.constexpr, GROUPS: tl.constexpr, MB: tl.constexpr, KC: tl.constexpr,
    OUT: tl.constexpr, OP: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out[o, offset[a,i], tap] = Σ over splits of partial[a, block of (tap, place[a,i]), x, …, o], or 0 if not read."""
    x = tl.program_id(0) % KW
    y = (tl.program_id(0) // KW) % LINES  # of all planes of the kernel
    element = tl.program_id(0) // (KW * LINES)
    i = tl.program_id(1) * BK + tl.arange(0, BK)
    live = i < count
    place = tl.load(places + element * count + i, mask=live, other=-1)
    offset = tl.load(offsets + element * count + i, mask=live, other=0)
    block = y * S + tl.maximum(place, 0) // KC
    row = (block % MB) * KC + tl.maximum(place, 0) % KC
    group = element * GROUPS + block // MB
    o = tl.arange(0, OP)
    source = ((group * KW + x) * (MB * KC) + row)[:, None] * OP + o[None, :]
    kept = (place >= 0)[:, None] & (o < OUT)[None, :]
    total = tl.zeros((BK, OP), tl.float32)
    for split in range(splits):
        total += tl.load(partial + split * split_stride + source, mask=kept, other=0.0)
    target = offset[:, None] + (y * KW + x) * tap_stride + o[None, :] * output_stride
    tl.store(out + target, total.to(out.dtype.element_ty), mask=live[:, None] & (o < OUT)[None, :])
