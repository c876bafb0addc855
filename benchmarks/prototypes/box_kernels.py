# mypy: ignore-errors
"""The banded correlation of `line_kernels` in plain Triton: one box of samples per tap, so samples are copied KW times.

It runs in Triton's interpreter, which checks geometry and packing without a device. BOX tells whether samples come
through tensor descriptors or through pointers.
"""

import triton
import triton.language as tl


@triton.jit
def correlate(
    x,  # tensor descriptor [D, H, W, B, A·C] with boxes [1, 1, WT, BT, KC], or a pointer to (B, D, H, W, A·C)
    weight,  # tensor descriptor [A·STEPS·KW·N, KC] with boxes [N, KC], or a pointer
    starts, out, elements, batch, in_d, in_h, in_w, channels, size_d, size_h, size_w, tiles, tiles_w, tiles_h,
    pad_d, pad_h, pad_w, x_b, x_d, x_h, x_w, out_b, out_d, out_h, out_w, out_a,
    S: tl.constexpr, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, LINES: tl.constexpr, OUT: tl.constexpr,
    OP: tl.constexpr, WT: tl.constexpr, BT: tl.constexpr, KC: tl.constexpr, BOX: tl.constexpr, SUMS: tl.constexpr,
    PROGRAMS: tl.constexpr,
):  # fmt: skip
    """out[b,p,a,o] = Σ over spans, taps y and channels k of x[b, p + y − pad, start + k] · weight[a,span,y,k,o]."""
    BM: tl.constexpr = WT * BT
    N: tl.constexpr = LINES * OP
    LI: tl.constexpr = KH + LINES - 1
    STEPS: tl.constexpr = KD * LI * S * KW
    row = tl.arange(0, BM)
    column = tl.arange(0, N)
    k = tl.arange(0, KC)
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS):
        element = tile % elements
        rest = tile // elements
        w0 = (rest % tiles_w) * WT
        rest = rest // tiles_w
        h0 = (rest % tiles_h) * LINES
        rest = rest // tiles_h
        d0 = rest % size_d
        b0 = (rest // size_d) * BT
        b = b0 + row % BT
        w = w0 + row // BT
        sums = tl.zeros((BM, N), SUMS)
        for step in tl.range(STEPS):
            tap = step % KW
            span = (step // KW) % S
            h_in = h0 - pad_h + (step // (KW * S)) % LI
            d_in = d0 - pad_d + step // (KW * S * LI)
            channel = tl.load(starts + element * S + span)
            line = (element * STEPS + step) * N
            if BOX:
                samples = x.load([d_in, h_in, w0 - pad_w + tap, b0, channel]).reshape(BM, KC)
                values = weight.load([line, 0])
            else:
                w_in = w - pad_w + tap
                images = tl.where((h_in >= 0) & (h_in < in_h) & (d_in >= 0) & (d_in < in_d), batch, 0)
                live = (b < images) & (w_in >= 0) & (w_in < in_w)
                place = b.to(tl.int64) * x_b + d_in * x_d + h_in * x_h + w_in * x_w + channel
                inside = live[:, None] & (channel + k < channels)[None, :]
                samples = tl.load(x + place[:, None] + k[None, :], mask=inside, other=0.0)
                values = tl.load(weight + (line + column).to(tl.int64)[:, None] * KC + k[None, :])
            sums = tl.dot(samples, values.T, sums, out_dtype=SUMS)
        h = h0 + column // OP
        o = column % OP
        place = b.to(tl.int64) * out_b + d0 * out_d + w * out_w
        kept = ((b < batch) & (w < size_w))[:, None] & ((h < size_h) & (o < OUT))[None, :]
        target = out + place[:, None] + (element * out_a + h * out_h + o)[None, :]
        tl.store(target, sums.to(out.dtype.element_ty), mask=kept)
