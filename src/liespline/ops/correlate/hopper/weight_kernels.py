# mypy: ignore-errors
# ruff: noqa: RUF005 (Triton adds tuples but does not unpack them)
"""The kernel's gradient of the banded correlation on Hopper, with the rows and the copying warp of `line_kernels`.

Samples are the unshifted operand: M is made of MB blocks (plane, line, span) of KC channels that all meet one tile of
gradients. The gradients have KW − 1 columns more, and tap t reads their rows PT·BB·(KW − 1 − t) further on. With KEEP,
samples go to registers KEEP rows at a time and serve all taps from there: at few outputs wgmma is limited by what it
reads from shared memory, and it would read the samples again for each tap. The copy engine starts at multiples of 16
bytes, so an element's outputs may stand up to seven columns later than its sums.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

from .stages import barriers, copy, shifted, stage_of, view


@gluon.jit
def _copies(
    x_desc, g_desc, starts, xs, gs, ready, empty, element, group, first, count, tiles_w, size_h, tiles_d, pad_d, pad_h,
    pad_w, S: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, OUT: gl.constexpr, OP: gl.constexpr, MB: gl.constexpr,
    WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, KC: gl.constexpr, WB: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    COLUMNS: gl.constexpr = WT + KW - 1
    BOXES: gl.constexpr = COLUMNS // WB
    samples = view(xs, gl.bfloat16, [STAGES * MB, 1, WT, PT, BB, KC], x_desc.layout)
    gradients = view(gs, gl.bfloat16, [STAGES * BOXES, 1, WB, PT, BB, OP], g_desc.layout)
    for step in range(count):
        stage = step % STAGES
        place = first + step
        w0 = (place % tiles_w) * WT
        rest = place // tiles_w
        h0 = rest % size_h
        rest = rest // size_h
        d0 = (rest % tiles_d) * PT
        b0 = (rest // tiles_d) * BB
        bar = ready.index(stage)
        mbarrier.wait(empty.index(stage), ((step // STAGES) & 1) ^ 1)
        mbarrier.expect(bar, (WT * MB * KC + COLUMNS * OP) * PT * BB * 2)
        for j in gl.static_range(MB):
            block = group * MB + j
            line = h0 + (block // S) % KH - pad_h
            plane = d0 + block // (S * KH) - pad_d
            channel = gl.load(starts + element * S + block % S)
            copy(x_desc, [line, w0, plane, b0, channel], bar, samples.index(stage * MB + j))
        for i in gl.static_range(BOXES):
            place = [h0, w0 + pad_w - (KW - 1) + i * WB, d0, b0, element * OUT // 8 * 8]
            copy(g_desc, place, bar, gradients.index(stage * BOXES + i))


@gluon.jit
def _products(
    xs, gs, ready, empty, partial, slot, count,
    KW: gl.constexpr, OP: gl.constexpr, MB: gl.constexpr, WT: gl.constexpr, BT: gl.constexpr, KC: gl.constexpr,
    STAGES: gl.constexpr, KEEP: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    BM: gl.constexpr = WT * BT
    M: gl.constexpr = MB * KC
    COLUMNS: gl.constexpr = WT + KW - 1
    x_flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=KC * 2, element_bitwidth=16, rank=2)
    g_flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=OP * 2, element_bitwidth=16, rank=2)
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, OP, 16])
    operand: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=layout, k_width=2)
    samples = view(xs, gl.bfloat16, [STAGES, BM, M], x_flat)
    sums = ()
    for _ in gl.static_range(KW):
        sums = sums + (gl.zeros([M, OP], gl.float32, layout=layout),)
    for step in range(count):
        stage = step % STAGES
        mbarrier.wait(ready.index(stage), (step // STAGES) & 1)
        gradients = stage_of(gs, stage, COLUMNS, STAGES)
        a = samples.index(stage).permute((1, 0))
        if KEEP:
            for k in gl.static_range(BM // KEEP):
                kept = a.slice(k * KEEP, KEEP, dim=1).load(operand)
                added = ()
                for t in gl.static_range(KW):
                    b = shifted(gradients, KW - 1 - t, [BM, OP], g_flat)
                    b = b.slice(k * KEEP, KEEP, dim=0)
                    added = added + (warpgroup_mma(kept, b, warpgroup_mma_init(sums[t]), is_async=True),)
                sums = warpgroup_mma_wait(0, deps=added)  # products read the registers until they are done
        else:
            added = ()
            for t in gl.static_range(KW):
                b = shifted(gradients, KW - 1 - t, [BM, OP], g_flat)
                added = added + (warpgroup_mma(a, b, warpgroup_mma_init(sums[t]), is_async=True),)
            sums = warpgroup_mma_wait(KW, deps=added)
        if step > 0:  # the step before is done
            mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), count=1)
    sums = warpgroup_mma_wait(0, deps=sums)
    row = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, OP, layout=gl.SliceLayout(0, layout))
    for t in gl.static_range(KW):
        place = partial + (slot * KW + t).to(gl.int64) * (M * OP)
        gl.store(place + row[:, None] * OP + column[None, :], sums[t])


@gluon.jit
def correlate_weight(
    x_desc,  # [H, W, D, B, R·C], boxes [1, WT, PT, BB, KC]
    g_desc,  # [H, W, D, B, A·O], boxes [1, WB, PT, BB, OP]
    starts,  # (A, S) first channel of each span
    partial,  # (splits, A, groups, KW, MB·KC, OP)
    elements, groups, places, share, tiles_w, size_h, tiles_d, pad_d, pad_h, pad_w,
    S: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, OUT: gl.constexpr, OP: gl.constexpr, MB: gl.constexpr,
    WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, KC: gl.constexpr, WB: gl.constexpr,
    STAGES: gl.constexpr, KEEP: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """partial[a, block, t, k, o] = Σ over b, p of x[b, p + y − pad, start + k] · grad[b, p, a, o], split over p."""
    pid = gl.program_id(0)
    group = pid % groups
    element = (pid // groups) % elements
    first = (pid // (groups * elements)) * share
    count = gl.minimum(share, places - first)
    x_flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=KC * 2, element_bitwidth=16, rank=2)
    g_flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=OP * 2, element_bitwidth=16, rank=2)
    xs = gl.allocate_shared_memory(gl.bfloat16, [STAGES * MB, WT * PT * BB, KC], x_flat)
    gs = gl.allocate_shared_memory(gl.bfloat16, [STAGES * (WT + KW - 1), PT * BB, OP], g_flat)
    ready, empty = barriers(STAGES)
    gl.warp_specialize(
        [
            (
                _products,
                (xs, gs, ready, empty, partial, pid, count, KW, OP, MB, WT, PT * BB, KC, STAGES, KEEP, num_warps),
            ),
            (
                _copies,
                (x_desc, g_desc, starts, xs, gs, ready, empty, element, group, first, count, gl.to_tensor(tiles_w),
                 gl.to_tensor(size_h), gl.to_tensor(tiles_d), gl.to_tensor(pad_d), gl.to_tensor(pad_h),
                 gl.to_tensor(pad_w), S, KH, KW, OUT, OP, MB, WT, PT, BB, KC, WB, STAGES),
            ),
        ],
        [1],
        [40 if MB <= 8 else 80],
    )  # fmt: skip
