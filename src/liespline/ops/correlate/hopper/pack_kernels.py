# mypy: ignore-errors
"""Two Triton kernels that bring sampled kernels into the order of the Hopper kernels, and their gradients back.

A sampled kernel (O, A, C, T, *W) may lie in memory in any order whose taps are evenly apart. Tables say what stands
where: an entry is block · channels + channel, with the block's element and place a·T + t, negative where nothing is.
"""

import triton
import triton.language as tl


@triton.jit
def pack(
    kernel,
    entries,  # (A, S·KC)
    out,  # (A, KD, KH + LINES − 1, S, KW, LINES·OP, KC), the first four by their strides
    element_stride, block_stride, channel_stride, tap_stride, output_stride, plane_stride, line_stride, span_stride,
    T: tl.constexpr, C: tl.constexpr, S: tl.constexpr, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
    LINES: tl.constexpr, OUT: tl.constexpr, OP: tl.constexpr, KC: tl.constexpr, FLIP: tl.constexpr,
):  # fmt: skip
    """out[a,z,y,s,x,(l,o),k] = kernel[o, entry[a,s,k], tap (z, y − l, x)], the taps in reverse order with FLIP."""
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
    entry = tl.load(entries + (element * S + span) * KC + k)
    block = entry // C
    offset = block // T * element_stride + block % T * block_stride + entry % C * channel_stride
    kept = ((y >= 0) & (y < KH) & (n % OP < OUT))[:, None] & (entry >= 0)[None, :]
    source = (n % OP) * output_stride + tap * tap_stride
    value = tl.load(kernel + source[:, None] + offset[None, :], mask=kept, other=0.0)
    place = (element * KD + plane).to(tl.int64) * plane_stride + line * line_stride + span * span_stride
    tl.store(out + place + x * (LINES * OP * KC) + n[:, None] * KC + k[None, :], value.to(out.dtype.element_ty))


@triton.jit
def unpack(
    partial,  # (splits, A, groups, KW, MB·KC, OP): outputs from the multiple of eight before an element's own on
    places,  # (A, T·C) span·KC + channel of each block and channel
    out,  # as the kernel
    splits, split_stride, element_stride, block_stride, channel_stride, tap_stride, output_stride,
    T: tl.constexpr, C: tl.constexpr, S: tl.constexpr, LINES: tl.constexpr, KW: tl.constexpr, GROUPS: tl.constexpr,
    MB: tl.constexpr, KC: tl.constexpr, OUT: tl.constexpr, OP: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out[o, a, c, t, tap] = Σ over splits of partial[a, block of (tap, place[a,t,c]), x, …, o], or 0 if not read."""
    x = tl.program_id(0) % KW
    y = (tl.program_id(0) // KW) % LINES  # of all planes of the kernel
    element = tl.program_id(0) // (KW * LINES)
    i = tl.program_id(1) * BK + tl.arange(0, BK)
    live = i < T * C
    place = tl.load(places + element * (T * C) + i, mask=live, other=-1)
    block = y * S + tl.maximum(place, 0) // KC
    row = (block % MB) * KC + tl.maximum(place, 0) % KC
    group = element * GROUPS + block // MB
    o = tl.arange(0, OP) - element * OUT % 8
    own = (o >= 0) & (o < OUT)
    source = ((group * KW + x) * (MB * KC) + row)[:, None] * OP + tl.arange(0, OP)[None, :]
    kept = (place >= 0)[:, None] & own[None, :]
    total = tl.zeros((BK, OP), tl.float32)
    for split in range(splits):
        total += tl.load(partial + split * split_stride + source, mask=kept, other=0.0)
    offset = element * element_stride + i // C * block_stride + i % C * channel_stride + (y * KW + x) * tap_stride
    target = out + offset[:, None] + o[None, :] * output_stride
    tl.store(target, total.to(out.dtype.element_ty), mask=live[:, None] & own[None, :])
