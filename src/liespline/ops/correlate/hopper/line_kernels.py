# mypy: ignore-errors
"""Banded correlation on Hopper in Gluon: every sample reaches shared memory once and serves all taps from there.

A tile is WT columns × PT planes × BB images of LINES output lines, its rows ordered so. Its samples lie in shared
memory in the same order, KW − 1 columns more: those of tap t are the same rows PT·BB·t further on. That is a multiple
of eight, which a swizzle repeats after, so the shifted rows are again an operand of wgmma. Padding is what the copy
engine reads outside the tensor: zeros. LINES output lines make the columns of one product; input line y of a tile meets
output line l in the kernel's line y − l.

One warp only copies and runs ahead over all tiles of a program; the others multiply and store. A stage passes between
them by two barriers: ready (the copy engine filled it) and empty (all its products are done).
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from .stages import barriers, copy, corner, shifted, stage_of, view


@gluon.jit
def _lines(h0, height, COUNT: gl.constexpr):
    # Of COUNT lines from h0 on: how many lie before the tensor, and how many in it.
    skipped = gl.maximum(-h0, 0)
    return skipped, gl.maximum(gl.minimum(height - h0, COUNT) - skipped, 0)


@gluon.jit
def _copies(
    x_desc, w_desc, starts, units, taps, ready, empty, tiles, sizes, height, pad_d, pad_h, pad_w,
    S: gl.constexpr, KD: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, LINES: gl.constexpr, N: gl.constexpr,
    WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, KC: gl.constexpr, WB: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    LI: gl.constexpr = KH + LINES - 1
    STEPS: gl.constexpr = KD * LI * S
    COLUMNS: gl.constexpr = WT + KW - 1
    BOXES: gl.constexpr = COLUMNS // WB
    boxes = view(units, gl.bfloat16, [STAGES * BOXES, 1, WB, PT, BB, KC], x_desc.layout)
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        element, w0, h0, d0, b0 = corner(tile, sizes, LINES, WT, PT, BB)
        skipped, lines = _lines(h0 - pad_h, height, LI)
        for i in range(KD * lines * S):
            stage = count % STAGES
            y = skipped + (i // S) % lines
            z = i // (S * lines)
            step = (z * LI + y) * S + i % S
            channel = gl.load(starts + element * S + i % S)
            line = h0 - pad_h + y
            plane = d0 - pad_d + z
            bar = ready.index(stage)
            mbarrier.wait(empty.index(stage), ((count // STAGES) & 1) ^ 1)
            mbarrier.expect(bar, (COLUMNS * PT * BB + KW * N) * KC * 2)
            for i in gl.static_range(BOXES):
                place = [line, w0 - pad_w + i * WB, plane, b0, channel]
                copy(x_desc, place, bar, boxes.index(stage * BOXES + i))
            for t in gl.static_range(KW):
                row = ((element * STEPS + step) * KW + t) * N
                copy(w_desc, [row, 0], bar, taps.index(stage * KW + t))
            count += 1


@gluon.jit
def _products(
    units, taps, ready, empty, out, tiles, sizes, height, pad_h, batch, size_d, size_h, size_w, out_b, out_d, out_h,
    out_w, out_a,
    S: gl.constexpr, KD: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, LINES: gl.constexpr, OUT: gl.constexpr,
    OP: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, KC: gl.constexpr,
    STAGES: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    BM: gl.constexpr = WT * PT * BB
    N: gl.constexpr = LINES * OP
    COLUMNS: gl.constexpr = WT + KW - 1
    flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=KC * 2, element_bitwidth=16, rank=2)
    sums: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, N, 16])
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        element, w0, h0, d0, b0 = corner(tile, sizes, LINES, WT, PT, BB)
        acc = gl.zeros([BM, N], gl.float32, layout=sums)
        _, lines = _lines(h0 - pad_h, height, KH + LINES - 1)
        for step in range(KD * lines * S):
            stage = count % STAGES
            mbarrier.wait(ready.index(stage), (count // STAGES) & 1)
            samples = stage_of(units, stage, COLUMNS, STAGES)
            token = warpgroup_mma_init(acc)
            for t in gl.static_range(KW):
                a = shifted(samples, t, [BM, KC], flat)
                b = taps.index(stage * KW + t).permute((1, 0))
                token = warpgroup_mma(a, b, token, is_async=True)
            acc = warpgroup_mma_wait(KW, deps=(token,))
            if step > 0:  # the step before is done
                mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES), count=1)
            count += 1
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES), count=1)
        row = gl.arange(0, BM, layout=gl.SliceLayout(1, sums))
        column = gl.arange(0, N, layout=gl.SliceLayout(0, sums))
        b = b0 + row % BB
        d = d0 + (row // BB) % PT
        w = w0 + row // (PT * BB)
        h = h0 + column // OP
        o = column % OP
        place = b.to(gl.int64) * out_b + d * out_d + w * out_w
        kept = ((b < batch) & (d < size_d) & (w < size_w))[:, None] & ((h < size_h) & (o < OUT))[None, :]
        gl.store(out + place[:, None] + (element * out_a + h * out_h + o)[None, :], acc.to(gl.bfloat16), mask=kept)


@gluon.jit
def correlate(
    x_desc,  # [H, W, D, B, R·C], boxes [1, WB, PT, BB, KC]
    w_desc,  # [A·STEPS·KW·N, KC], boxes [N, KC]; a step is (plane, line, span), N is (output line, output)
    starts,  # (A, S) first channel of each span
    out,  # (B, D, H, W, A, O) by its strides
    elements, batch, size_d, size_h, size_w, tiles_d, tiles_w, tiles_h,
    pad_d, pad_h, pad_w, out_b, out_d, out_h, out_w, out_a, tiles, height,
    S: gl.constexpr, KD: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, LINES: gl.constexpr, OUT: gl.constexpr,
    OP: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, KC: gl.constexpr, WB: gl.constexpr,
    STAGES: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """out[b,p,a,o] = Σ over spans, taps y and channels k of x[b, p + y − pad, start + k] · weight[a,span,y,k,o]."""
    N: gl.constexpr = LINES * OP
    flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=KC * 2, element_bitwidth=16, rank=2)
    units = gl.allocate_shared_memory(gl.bfloat16, [STAGES * (WT + KW - 1), PT * BB, KC], flat)
    taps = gl.allocate_shared_memory(gl.bfloat16, [STAGES * KW, N, KC], flat)
    ready, empty = barriers(STAGES)
    tiles = gl.to_tensor(tiles)
    height = gl.to_tensor(height)
    pad_h = gl.to_tensor(pad_h)
    sizes = (gl.to_tensor(elements), gl.to_tensor(tiles_w), gl.to_tensor(tiles_h), gl.to_tensor(tiles_d))
    gl.warp_specialize(
        [
            (
                _products,
                (units, taps, ready, empty, out, tiles, sizes, height, pad_h, gl.to_tensor(batch),
                 gl.to_tensor(size_d), gl.to_tensor(size_h), gl.to_tensor(size_w), gl.to_tensor(out_b),
                 gl.to_tensor(out_d), gl.to_tensor(out_h), gl.to_tensor(out_w), gl.to_tensor(out_a),
                 S, KD, KH, KW, LINES, OUT, OP, WT, PT, BB, KC, STAGES, num_warps),
            ),
            (
                _copies,
                (x_desc, w_desc, starts, units, taps, ready, empty, tiles, sizes, height, gl.to_tensor(pad_d),
                 pad_h, gl.to_tensor(pad_w),
                 S, KD, KH, KW, LINES, N, WT, PT, BB, KC, WB, STAGES),
            ),
        ],
        [1],
        [40],
    )  # fmt: skip
