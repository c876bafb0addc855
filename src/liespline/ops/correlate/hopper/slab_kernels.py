# mypy: ignore-errors
# ruff: noqa: RUF005 (Triton adds tuples but does not unpack them)
"""Banded correlation of volumes with few channels: a step holds all lines that a slab of output lines reads.

`line_kernels` copies a line of samples once per line of the kernel. Here a step is one plane of the kernel and one
span of 16 channels; its lines serve all KH·KW taps from shared memory. Two output lines make the columns of a product,
PAIRS such pairs are the sums of a program. WIDE columns are copied, WT + KW − 1 of them are used.

It is right where all 16 outputs of a line are stored. With 8 the last product of a tile was missing in some sums: the
assembler had moved 20 of the conversions to bfloat16, which read sums, before the instruction that waits for products,
as that names no register; with 16 it moves none, nor in any other of our kernels. `benchmarks/kernels.py` counts
such instructions without a GPU, and found them exactly in the sums that an H200 had wrong. So `tiles.slab` gives it 16
outputs alone.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from .stages import barriers, copy, corner, shifted, stage_of, view


@gluon.jit
def _copies(
    x_desc, w_desc, starts, units, taps, ready, empty, tiles, sizes, pad_d, pad_h, pad_w,
    S: gl.constexpr, KD: gl.constexpr, KH: gl.constexpr, PAIRS: gl.constexpr, WT: gl.constexpr, PT: gl.constexpr,
    BB: gl.constexpr, WIDE: gl.constexpr, ROWS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    LINES: gl.constexpr = 2 * PAIRS + KH - 1
    boxes = view(units, gl.bfloat16, [STAGES * LINES // 2, 2, WIDE, PT, BB, 16], x_desc.layout)
    weights = view(taps, gl.bfloat16, [STAGES * ROWS // 256, 256, 16], w_desc.layout)
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        element, w0, h0, d0, b0 = corner(tile, sizes, 2 * PAIRS, WT, PT, BB)
        for i in range(KD * S):
            stage = count % STAGES
            channel = gl.load(starts + element * S + i % S)
            plane = d0 - pad_d + i // S
            bar = ready.index(stage)
            mbarrier.wait(empty.index(stage), ((count // STAGES) & 1) ^ 1)
            mbarrier.expect(bar, (LINES * WIDE * PT * BB + ROWS) * 32)
            for j in gl.static_range(LINES // 2):
                place = [h0 - pad_h + 2 * j, w0 - pad_w, plane, b0, channel]
                copy(x_desc, place, bar, boxes.index(stage * (LINES // 2) + j))
            for j in gl.static_range(ROWS // 256):
                row = (element * (KD * S) + i) * ROWS + j * 256
                copy(w_desc, [row, 0], bar, weights.index(stage * (ROWS // 256) + j))
            count += 1


@gluon.jit
def _products(
    units, taps, ready, empty, out, tiles, sizes, batch, size_d, size_h, size_w, out_b, out_d, out_h, out_w, out_a,
    S: gl.constexpr, KD: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, PAIRS: gl.constexpr, OUT: gl.constexpr,
    WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, WIDE: gl.constexpr, ROWS: gl.constexpr,
    STAGES: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    BM: gl.constexpr = WT * PT * BB
    LINES: gl.constexpr = 2 * PAIRS + KH - 1
    flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=32, element_bitwidth=16, rank=2)
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[WARPS, 1], instr_shape=[16, 32, 16])
    row = gl.arange(0, BM, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, 32, layout=gl.SliceLayout(0, layout))
    o = column % 16
    count = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        element, w0, h0, d0, b0 = corner(tile, sizes, 2 * PAIRS, WT, PT, BB)
        sums = ()
        for _ in gl.static_range(PAIRS):
            sums = sums + (gl.zeros([BM, 32], gl.float32, layout=layout),)
        for step in range(KD * S):
            stage = count % STAGES
            mbarrier.wait(ready.index(stage), (count // STAGES) & 1)
            samples = stage_of(units, stage, LINES * WIDE, STAGES)
            for y in gl.static_range(KH + 1):
                for t in gl.static_range(KW):
                    b = taps.index(stage * (ROWS // 32) + y * KW + t).permute((1, 0))
                    added = ()
                    for p in gl.static_range(PAIRS):
                        a = shifted(samples, (2 * p + y) * WIDE + t, [BM, 16], flat)
                        added = added + (warpgroup_mma(a, b, sums[p], is_async=True),)
                    sums = added
                if y == 0:  # what the step before read is free
                    sums = warpgroup_mma_wait(5, deps=sums)
                    if step > 0:
                        mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES), count=1)
            sums = warpgroup_mma_wait(5, deps=sums)
            count += 1
        sums = warpgroup_mma_wait(0, deps=sums)
        mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES), count=1)
        b = b0 + row % BB
        d = d0 + (row // BB) % PT
        w = w0 + row // (PT * BB)
        place = b.to(gl.int64) * out_b + d * out_d + w * out_w
        rows = (b < batch) & (d < size_d) & (w < size_w)
        for p in gl.static_range(PAIRS):
            h = h0 + 2 * p + column // 16
            kept = rows[:, None] & ((h < size_h) & (o < OUT))[None, :]
            target = out + place[:, None] + (element * out_a + h * out_h + o)[None, :]
            gl.store(target, sums[p].to(gl.bfloat16), mask=kept)


@gluon.jit
def correlate(
    x_desc,  # [H, W, D, B, A·C], boxes [2, WIDE, PT, BB, 16]
    w_desc,  # [A·KD·S·ROWS, 16], boxes [256, 16]; ROWS are (kernel line + 1, tap, output line, output), zeros after
    starts, out, elements, batch, size_d, size_h, size_w, tiles_d, tiles_w, tiles_h, pad_d, pad_h, pad_w,
    out_b, out_d, out_h, out_w, out_a, tiles,
    S: gl.constexpr, KD: gl.constexpr, KH: gl.constexpr, KW: gl.constexpr, PAIRS: gl.constexpr, OUT: gl.constexpr,
    WT: gl.constexpr, PT: gl.constexpr, BB: gl.constexpr, WIDE: gl.constexpr, ROWS: gl.constexpr,
    STAGES: gl.constexpr, num_warps: gl.constexpr,
):  # fmt: skip
    """out[b,p,a,o] = Σ over spans, taps y and channels k of x[b, p + y − pad, start + k] · weight[a,span,y,k,o]."""
    LINES: gl.constexpr = 2 * PAIRS + KH - 1
    flat: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=32, element_bitwidth=16, rank=2)
    units = gl.allocate_shared_memory(gl.bfloat16, [STAGES * LINES * WIDE, PT * BB, 16], flat)
    taps = gl.allocate_shared_memory(gl.bfloat16, [STAGES * ROWS // 32, 32, 16], flat)
    ready, empty = barriers(STAGES)
    tiles = gl.to_tensor(tiles)
    sizes = (gl.to_tensor(elements), gl.to_tensor(tiles_w), gl.to_tensor(tiles_h), gl.to_tensor(tiles_d))
    gl.warp_specialize(
        [
            (
                _products,
                (units, taps, ready, empty, out, tiles, sizes, gl.to_tensor(batch), gl.to_tensor(size_d),
                 gl.to_tensor(size_h), gl.to_tensor(size_w), gl.to_tensor(out_b), gl.to_tensor(out_d),
                 gl.to_tensor(out_h), gl.to_tensor(out_w), gl.to_tensor(out_a),
                 S, KD, KH, KW, PAIRS, OUT, WT, PT, BB, WIDE, ROWS, STAGES, num_warps),
            ),
            (
                _copies,
                (x_desc, w_desc, starts, units, taps, ready, empty, tiles, sizes, gl.to_tensor(pad_d),
                 gl.to_tensor(pad_h), gl.to_tensor(pad_w), S, KD, KH, PAIRS, WT, PT, BB, WIDE, ROWS, STAGES),
            ),
        ],
        [1],
        [56],
    )  # fmt: skip
