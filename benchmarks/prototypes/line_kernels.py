# mypy: ignore-errors
"""Banded correlation on Hopper in Gluon: every sample reaches shared memory once and serves all taps from there.

A tile is WT columns × PT planes × BB images of one output line, its rows ordered so, BT = PT·BB. The samples of a tile
lie in shared memory in the same order, KW − 1 columns more, so the samples of tap t are the same rows BT·t further on.
BT is a multiple of eight, which is what a swizzle repeats after: the shifted rows are again an operand of wgmma.
Padding is what the copy engine reads outside the tensor: zeros.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)


@gluon.jit
def _copy_step(
    x_desc, w_desc, starts, element, step, b0, d0, h0, w0, bar, units, taps, stage,
    S: gl.constexpr, LI: gl.constexpr, KW: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr,
    KC: gl.constexpr, WB: gl.constexpr, N: gl.constexpr, STEPS: gl.constexpr,
):  # fmt: skip
    COLUMNS: gl.constexpr = WT + KW - 1
    channel = gl.load(starts + element * S + step % S)
    line = (step // S) % LI
    plane = step // (S * LI)
    mbarrier.expect(bar, (COLUMNS * PT * BB + KW * N) * KC * 2)
    for i in gl.static_range(COLUMNS // WB):
        box = units.index(stage * COLUMNS + i * WB)._reinterpret(gl.bfloat16, [1, WB, PT, BB, KC], x_desc.layout)
        tma.async_copy_global_to_shared(x_desc, [h0 + line, w0 + i * WB, d0 + plane, b0, channel], bar, box)
    for t in gl.static_range(KW):
        row = ((element * STEPS + step) * KW + t) * N
        tma.async_copy_global_to_shared(w_desc, [row, 0], bar, taps.index(stage * KW + t))


@gluon.jit
def correlate(
    x_desc,  # [H, W, D, B, A·C], boxes [1, WB, PT, BB, KC]
    w_desc,  # [A·STEPS·KW·N, KC], boxes [N, KC]; a step is (plane, line, span), N is (output line, output)
    starts,  # (A, S) first channel of each span
    out,  # (B, D, H, W, A, O) by its strides
    elements, batch, size_d, size_h, size_w, tiles_d, tiles_w, tiles_h, pad_d, pad_h, pad_w,
    out_b, out_d, out_h, out_w, out_a,
    S: gl.constexpr, KD: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, LINES: gl.constexpr, OUT: gl.constexpr,
    OP: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, KC: gl.constexpr, WB: gl.constexpr,
    STAGES: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """out[b,p,a,o] = Σ over spans, taps y and channels k of x[b, p + y − pad, start + k] · weight[a,span,y,k,o]."""
    BT: gl.constexpr = PT * BB
    BM: gl.constexpr = WT * BT
    N: gl.constexpr = LINES * OP
    LI: gl.constexpr = KH + LINES - 1
    STEPS: gl.constexpr = KD * LI * S
    COLUMNS: gl.constexpr = WT + KW - 1
    flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=KC * 2, element_bitwidth=16, rank=2)
    sums: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, N, 16]
    )
    pid = gl.program_id(0)
    element = pid % elements
    rest = pid // elements
    w0 = (rest % tiles_w) * WT
    rest = rest // tiles_w
    h0 = (rest % tiles_h) * LINES
    rest = rest // tiles_h
    d0 = (rest % tiles_d) * PT
    b0 = (rest // tiles_d) * BB

    units = gl.allocate_shared_memory(gl.bfloat16, [STAGES * COLUMNS, BT, KC], flat)
    taps = gl.allocate_shared_memory(gl.bfloat16, [STAGES * KW, N, KC], flat)
    bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(bars.index(i), count=1)
    fence_async_shared()
    gl.thread_barrier()

    for i in gl.static_range(STAGES - 1):
        if i < STEPS:
            _copy_step(x_desc, w_desc, starts, element, i, b0, d0 - pad_d, h0 - pad_h, w0 - pad_w, bars.index(i),
                       units, taps, i, S, LI, KW, WT, PT, BB, KC, WB, N, STEPS)  # fmt: skip
    acc = warpgroup_mma_init(gl.zeros([BM, N], gl.float32, layout=sums))
    for step in range(STEPS):
        stage = step % STAGES
        mbarrier.wait(bars.index(stage), (step // STAGES) & 1)
        for t in gl.static_range(KW):
            a = units.index(stage * COLUMNS + t)._reinterpret(gl.bfloat16, [BM, KC], flat)
            b = taps.index(stage * KW + t).permute((1, 0))
            acc = warpgroup_mma(a, b, acc, is_async=True)
        # What the step before read is free once all but this step's products are done.
        acc = warpgroup_mma_wait(KW, deps=(acc,))
        ahead = step + STAGES - 1
        if ahead < STEPS:
            gl.thread_barrier()
            _copy_step(x_desc, w_desc, starts, element, ahead, b0, d0 - pad_d, h0 - pad_h, w0 - pad_w,
                       bars.index(ahead % STAGES), units, taps, ahead % STAGES, S, LI, KW, WT, PT, BB, KC, WB,
                       N, STEPS)  # fmt: skip
        acc = warpgroup_mma_init(acc)
    acc = warpgroup_mma_wait(0, deps=(acc,))
    for i in gl.static_range(STAGES):
        mbarrier.invalidate(bars.index(i))

    PER: gl.constexpr = 8 if N >= 64 else 4
    wide: gl.constexpr = gl.BlockedLayout([1, PER], [32 * PER // N, N // PER], [num_warps, 1], [1, 0])
    values = gl.convert_layout(acc.to(gl.bfloat16), wide)
    row = gl.arange(0, BM, layout=gl.SliceLayout(1, wide))
    column = gl.arange(0, N, layout=gl.SliceLayout(0, wide))
    b = b0 + row % BB
    d = d0 + (row // BB) % PT
    w = w0 + row // BT
    h = h0 + column // OP
    o = column % OP
    place = b.to(gl.int64) * out_b + d * out_d + w * out_w
    kept = ((b < batch) & (d < size_d) & (w < size_w))[:, None] & ((h < size_h) & (o < OUT))[None, :]
    gl.store(out + place[:, None] + (element * out_a + h * out_h + o)[None, :], values, mask=kept)
