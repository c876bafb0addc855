# mypy: ignore-errors
# ruff: noqa: RUF005 (Triton adds tuples but does not unpack them)
"""The weight gradient of the banded correlation in Gluon, with the same rows as `line_kernels`.

Samples are the unshifted operand: M is made of blocks (plane, line, span) of KC channels that all meet one tile of
gradients. The gradients have KW − 1 columns more, and tap t reads their rows BT·(KW − 1 − t) further on.
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
    x_desc, g_desc, starts, element, group, place, tiles_w, size_h, tiles_d, pad_d, pad_h, pad_w, bar, xs, gs, stage,
    S: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr,
    KC: gl.constexpr, WB: gl.constexpr, OP: gl.constexpr, MB: gl.constexpr, OUT: gl.constexpr,
):  # fmt: skip
    COLUMNS: gl.constexpr = WT + KW - 1
    w0 = (place % tiles_w) * WT
    rest = place // tiles_w
    h0 = rest % size_h
    rest = rest // size_h
    d0 = (rest % tiles_d) * PT
    b0 = (rest // tiles_d) * BB
    mbarrier.expect(bar, (WT * MB * KC + COLUMNS * OP) * PT * BB * 2)
    for j in gl.static_range(MB):
        block = group * MB + j
        line = (block // S) % KH
        plane = block // (S * KH)
        channel = gl.load(starts + element * S + block % S)
        box = xs.index(stage * MB + j)._reinterpret(gl.bfloat16, [1, WT, PT, BB, KC], x_desc.layout)
        tma.async_copy_global_to_shared(x_desc, [h0 + line - pad_h, w0, d0 + plane - pad_d, b0, channel], bar, box)
    for i in gl.static_range(COLUMNS // WB):
        box = gs.index(stage * COLUMNS + i * WB)._reinterpret(gl.bfloat16, [1, WB, PT, BB, OP], g_desc.layout)
        column = w0 + pad_w - (KW - 1) + i * WB
        tma.async_copy_global_to_shared(g_desc, [h0, column, d0, b0, element * OUT], bar, box)


@gluon.jit
def correlate_weight(
    x_desc,  # [H, W, D, B, A·C], boxes [1, WT, PT, BB, KC]
    g_desc,  # [H, W, D, B, A·O], boxes [1, WB, PT, BB, OP]
    starts,  # (A, S) first channel of each span
    partial,  # (splits, A, groups, KW, M, OP)
    elements, groups, places, share, tiles_w, size_h, tiles_d, pad_d, pad_h, pad_w,
    S: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, OUT: gl.constexpr, OP: gl.constexpr, MB: gl.constexpr,
    WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, KC: gl.constexpr, WB: gl.constexpr,
    STAGES: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """partial[a, block, t, k, o] = Σ over b, p of x[b, p + y − pad, start + k] · grad[b, p, a, o], split over p."""
    BT: gl.constexpr = PT * BB
    BM: gl.constexpr = WT * BT
    M: gl.constexpr = MB * KC
    COLUMNS: gl.constexpr = WT + KW - 1
    x_flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=KC * 2, element_bitwidth=16, rank=2)
    g_flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=OP * 2, element_bitwidth=16, rank=2)
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, OP, 16]
    )
    pid = gl.program_id(0)
    group = pid % groups
    element = (pid // groups) % elements
    split = pid // (groups * elements)
    first = split * share
    count = gl.minimum(share, places - first)

    xs = gl.allocate_shared_memory(gl.bfloat16, [STAGES * MB, BM, KC], x_flat)
    gs = gl.allocate_shared_memory(gl.bfloat16, [STAGES * COLUMNS, BT, OP], g_flat)
    bars = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(bars.index(i), count=1)
    fence_async_shared()
    gl.thread_barrier()

    for i in gl.static_range(STAGES - 1):
        if i < count:
            _copy_step(x_desc, g_desc, starts, element, group, first + i, tiles_w, size_h, tiles_d, pad_d, pad_h,
                       pad_w, bars.index(i), xs, gs, i, S, KH, KW, WT, PT, BB, KC, WB, OP, MB, OUT)  # fmt: skip
    sums = ()
    for _ in gl.static_range(KW):
        sums = sums + (gl.zeros([M, OP], gl.float32, layout=layout),)
    for step in range(count):
        stage = step % STAGES
        mbarrier.wait(bars.index(stage), (step // STAGES) & 1)
        a = xs.index(stage * MB)._reinterpret(gl.bfloat16, [BM, M], x_flat).permute((1, 0))
        added = ()
        for t in gl.static_range(KW):
            b = gs.index(stage * COLUMNS + KW - 1 - t)._reinterpret(gl.bfloat16, [BM, OP], g_flat)
            added = added + (warpgroup_mma(a, b, warpgroup_mma_init(sums[t]), is_async=True),)
        sums = warpgroup_mma_wait(KW, deps=added)
        ahead = step + STAGES - 1
        if ahead < count:
            gl.thread_barrier()
            _copy_step(x_desc, g_desc, starts, element, group, first + ahead, tiles_w, size_h, tiles_d, pad_d, pad_h,
                       pad_w, bars.index(ahead % STAGES), xs, gs, ahead % STAGES, S, KH, KW, WT, PT, BB, KC, WB, OP,
                       MB, OUT)  # fmt: skip
    sums = warpgroup_mma_wait(0, deps=sums)
    for i in gl.static_range(STAGES):
        mbarrier.invalidate(bars.index(i))

    row = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, OP, layout=gl.SliceLayout(0, layout))
    for t in gl.static_range(KW):
        place = partial + (((split * elements + element) * groups + group) * KW + t).to(gl.int64) * (M * OP)
        gl.store(place + row[:, None] * OP + column[None, :], sums[t])
