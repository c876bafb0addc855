# mypy: ignore-errors
# ruff: noqa: RUF005 (Triton adds tuples but does not unpack them)
"""The banded path's two Triton kernels, implicit matrix products over channels-last fields, and their layouts.

Both treat a run of BM (or BP) samples along the last space axis as rows of one matrix and never load a sample
twice for its KW taps along that axis: each tap has its own columns, and what it sums belongs to an output that
many rows earlier. `wide` is the number of samples a line of outputs reads. Strides of fields and gradients come
in units of eight numbers, which tells the compiler that vector loads are aligned.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F


@triton.jit
def _zeros(ROWS: tl.constexpr, COLUMNS: tl.constexpr, SUMS: tl.constexpr):
    return tl.zeros((ROWS, COLUMNS), SUMS)


@triton.jit
def _columns(START: tl.constexpr, COUNT: tl.constexpr):
    return START + tl.arange(0, COUNT)


@triton.jit
def _meet(sums, row, START: tl.constexpr, COUNT: tl.constexpr, ROWS: tl.constexpr, BO: tl.constexpr):
    # Bring each tap's sums to the row of the output they belong to, and add the taps up.
    tap = _columns(START, COUNT) // BO
    source = tl.minimum(row[:, None] + tap[None, :], ROWS - 1)
    return tl.sum(tl.reshape(tl.gather(sums, source, 0), (ROWS, COUNT // BO, BO)), 1)


@triton.jit
def correlate(
    x,  # fields (B, R, D, H, W, C)
    weight,  # (A, output blocks, T, KD, KH, C, Q): columns (tap along W, BO outputs), zeros up to Q
    table,  # (A, T) the fields each element reads
    counts,  # (A,) how many of them
    out,  # (B, A, D, H, W, O)
    rows, tiles, elements, width, x_b, x_r, x_d, x_h, x_w, in_d, in_h, in_w, out_b, out_a, out_d, out_h, out_w,
    size_d, size_h, size_w, wide, stride_d, stride_h, stride_w, pad_d, pad_h, pad_w,
    C: tl.constexpr, N: tl.constexpr, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, BM: tl.constexpr,
    BO: tl.constexpr, BC: tl.constexpr, PIECES: tl.constexpr, STARTS: tl.constexpr, Q: tl.constexpr,
    TILES_FIRST: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """out[b,a,p,o] = Σ over f, y, c of x[b, table[a,f], stride·p + y − pad, c] · weight[a,f,y,c,o]."""
    blocks: tl.constexpr = (N + BO - 1) // BO
    parts: tl.constexpr = (C + BC - 1) // BC
    pid = tl.program_id(0)
    if TILES_FIRST:  # neighbours share the weights
        tile = pid % tiles
        block = (pid // tiles) % blocks
        element = pid // (tiles * blocks)
    else:  # neighbours share the samples
        block = pid % blocks
        element = (pid // blocks) % elements
        tile = pid // (blocks * elements)

    row = tl.arange(0, BM)
    q = tile * (BM - KW + 1) + row
    w = q % wide
    line = q // wide
    h = line % size_h
    d = (line // size_h) % size_d
    b = (line // (size_h * size_d)).to(tl.int64)
    w_in = w - pad_w
    h_in = h * stride_h - pad_h
    d_in = d * stride_d - pad_d
    inside = (q < rows) & (w_in >= 0) & (w_in < in_w)
    if KD == 1:  # one test for all steps
        inside = inside & (d_in >= 0) & (d_in < in_d)
    base = (b * x_b + d_in * x_d + h_in * x_h + w_in * x_w) * 8

    sums = ()
    for i in tl.static_range(len(PIECES)):
        sums = sums + (_zeros(BM, PIECES[i], SUMS),)
    for step in range(0, tl.load(counts + element).to(tl.int32) * (KD * KH * parts)):
        c = (step % parts) * BC + tl.arange(0, BC)
        tap = step // parts
        kh = tap % KH
        kd = (tap // KH) % KD
        field = tl.load(table + element * width + tap // (KH * KD)).to(tl.int64)
        valid = inside & (h_in + kh >= 0) & (h_in + kh < in_h)
        if KD > 1:
            valid = valid & (d_in + kd >= 0) & (d_in + kd < in_d)
        source = x + (field * x_r + kd * x_d + kh * x_h) * 8 + base[:, None] + c[None, :]
        taps = weight + ((element * blocks + block) * width * (KD * KH) + tap) * (C * Q) + c[:, None] * Q
        if C % BC == 0:
            samples = tl.load(source, mask=valid[:, None], other=0.0)
        else:
            samples = tl.load(source, mask=valid[:, None] & (c < C)[None, :], other=0.0)
        added = ()
        for i in tl.static_range(len(PIECES)):
            n = _columns(STARTS[i], PIECES[i])
            if C % BC == 0:
                values = tl.load(taps + n[None, :])
            else:
                values = tl.load(taps + n[None, :], mask=(c < C)[:, None], other=0.0)
            added = added + (tl.dot(samples, values, sums[i], input_precision=PRECISION, out_dtype=SUMS),)
        sums = added

    total = _zeros(BM, BO, SUMS)
    for i in tl.static_range(len(PIECES)):
        total += _meet(sums[i], row, STARTS[i], PIECES[i], BM, BO)
    o = block * BO + tl.arange(0, BO)
    w_out = w // stride_w
    whole = (q < rows) & (row < BM - KW + 1) & (w % stride_w == 0) & (w_out < size_w)
    target = b * out_b + element.to(tl.int64) * out_a + d * out_d + h * out_h + w_out * out_w
    tl.store(
        out + target[:, None] + o[None, :],
        total.to(out.dtype.element_ty),
        mask=whole[:, None] & (o < N)[None, :],
    )


@triton.jit
def correlate_weight(
    x,  # fields, padded (B, R, D, H, W, C)
    grad,  # (B, A, D, H, W, O)
    table,  # (A, T)
    partial,  # (splits, A, T, KD, KH, C, KW, O)
    rows, split_rows, elements, x_b, x_r, x_d, x_h, x_w, g_b, g_a, g_d, g_h, g_w, size_d, size_h, size_w, wide,
    stride_d, stride_h, stride_w,
    T: tl.constexpr, C: tl.constexpr, N: tl.constexpr, KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,
    BM: tl.constexpr, BO: tl.constexpr, BP: tl.constexpr, PIECES: tl.constexpr, STARTS: tl.constexpr,
    SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """partial[a,f,y,c,o] = Σ over b, p of x[b, table[a,f], stride·p + y, c] · grad[b,a,p,o], a split of p each."""
    M: tl.constexpr = T * KD * KH * C
    tiles: tl.constexpr = (M + BM - 1) // BM
    blocks: tl.constexpr = (N + BO - 1) // BO
    pid = tl.program_id(0)
    block = (pid // tiles) % blocks
    element = (pid // (tiles * blocks)) % elements
    split = pid // (tiles * blocks * elements)

    m = (pid % tiles) * BM + tl.arange(0, BM)
    kh = (m // C) % KH
    kd = (m // (C * KH)) % KD
    field = tl.load(table + element * T + m // (C * KH * KD), mask=m < M, other=0).to(tl.int64)
    columns = (field * x_r + kd * x_d + kh * x_h) * 8 + m % C
    sums = ()
    for i in tl.static_range(len(PIECES)):
        sums = sums + (_zeros(BM, PIECES[i], SUMS),)
    for first in range(split * split_rows, tl.minimum((split + 1) * split_rows, rows), BP):
        q = first + tl.arange(0, BP)
        live = q < rows
        w = q % wide
        line = q // wide
        h = line % size_h
        d = (line // size_h) % size_d
        b = (line // (size_h * size_d)).to(tl.int64)
        source = (b * x_b + (d * stride_d) * x_d + (h * stride_h) * x_h + w * x_w) * 8
        origin = (b * g_b + element * g_a + d * g_d + h * g_h) * 8
        if M % BM == 0:
            samples = tl.load(x + source[:, None] + columns[None, :], mask=live[:, None], other=0.0)
        else:
            kept = live[:, None] & (m < M)[None, :]
            samples = tl.load(x + source[:, None] + columns[None, :], mask=kept, other=0.0)
        samples = tl.trans(samples)
        added = ()
        for i in tl.static_range(len(PIECES)):
            n = _columns(STARTS[i], PIECES[i])
            o = block * BO + n % BO
            shifted = w[:, None] - (n // BO)[None, :]
            w_out = shifted // stride_w
            kept = live[:, None] & (shifted >= 0) & (w_out < size_w) & (shifted % stride_w == 0)
            if N % BO != 0:
                kept = kept & (o < N)[None, :]
            values = tl.load(grad + origin[:, None] + w_out * g_w * 8 + o[None, :], mask=kept, other=0.0)
            added = added + (tl.dot(samples, values, sums[i], input_precision=PRECISION, out_dtype=SUMS),)
        sums = added

    place = (split * elements + element).to(tl.int64) * (M * KW * N) + m * (KW * N)
    for i in tl.static_range(len(PIECES)):
        n = _columns(STARTS[i], PIECES[i])
        tap = n // BO
        o = block * BO + n % BO
        tl.store(
            partial + place[:, None] + (tap * N + o)[None, :],
            sums[i],
            mask=(m < M)[:, None] & ((tap < KW) & (o < N))[None, :],
        )


def aligned(x: Tensor) -> Tensor:
    """Return x with channels innermost, in vectors of eight: copied only where its layout is another."""
    if x.shape[-1] % 8:
        return F.pad(x, (0, -x.shape[-1] % 8))
    if x.stride(-1) != 1 or any(s % 8 for s in x.stride()[:-1]) or x.data_ptr() % 16:
        return x.contiguous()
    return x


def eighths(x: Tensor) -> list[int]:
    """Return strides in units of eight numbers."""
    return [s // 8 for s in x.stride()[:5]]


def pack(blocks: Tensor, channels: int, tile: Any) -> Tensor:
    """(A, T, KD, KH, KW, C, O) -> (A, output blocks, T, KD, KH, channels, Q), zero where there was nothing."""
    elements, width, depth, height, taps, c, outputs = blocks.shape
    blocks = F.pad(blocks, (0, -outputs % tile.outputs, 0, channels - c))
    blocks = blocks.view(elements, width, depth, height, taps, channels, -1, tile.outputs)
    blocks = blocks.permute(0, 6, 1, 2, 3, 5, 4, 7).flatten(-2)
    return F.pad(blocks, (0, sum(tile.pieces) - blocks.shape[-1])).contiguous()


def options(tile: Any, x: Tensor) -> dict[str, Any]:
    """Return what both kernels are told about a tile and the precision."""
    exact = x.dtype in (torch.float32, torch.float64) and not torch.backends.cudnn.allow_tf32
    sums = tl.float64 if x.dtype == torch.float64 else tl.float32
    starts = tuple(sum(tile.pieces[:i]) for i in range(len(tile.pieces)))
    return {
        "BM": tile.rows, "BO": tile.outputs, "PIECES": tile.pieces, "STARTS": starts, "SUMS": sums,
        "PRECISION": "ieee" if exact else "tf32", "num_warps": 4, "num_stages": tile.stages,
    }  # fmt: skip
