# mypy: ignore-errors
"""Triton kernels for lifting images of few channels: implicit matrix products that read a window row at a time.

An image lies in memory as (B, H, W, C), so KW samples of C channels are one run of KW·C numbers: BK of them, with
zeros after the last, are the inner axis of a product for each of the KH rows. Outputs are rows of N = O·A columns.
"""

import triton
import triton.language as tl


@triton.jit
def _run(
    x, row, rows, kh, k, size_h, size_w, high, wide, stride_h, stride_w, pad_h, pad_w,
    C: tl.constexpr, KW: tl.constexpr,
):  # fmt: skip
    # The samples under row kh of the windows of some outputs, (outputs, BK), zero outside the image.
    w_out = row % wide
    h = (row // wide) % high * stride_h + kh - pad_h
    w = (w_out * stride_w - pad_w)[:, None] + (k // C)[None, :]
    image = (row // (wide * high)).to(tl.int64)
    inside = (row < rows) & (h >= 0) & (h < size_h)
    kept = inside[:, None] & (w >= 0) & (w < size_w) & (k < KW * C)[None, :]
    place = ((image * size_h + h) * size_w)[:, None] + w
    return tl.load(x + place * C + (k % C)[None, :], mask=kept, other=0.0)


@triton.jit
def forward(
    x, weight, out, rows, columns, size_h, size_w, high, wide, stride_h, stride_w, pad_h, pad_w,
    C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, NP: tl.constexpr,
    BM: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """out[row, n] = Σ over kh, k of run[row, kh, k] · weight[kh, k, n]."""
    row = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for kh in tl.static_range(KH):
        run = _run(x, row, rows, kh, k, size_h, size_w, high, wide, stride_h, stride_w, pad_h, pad_w, C, KW)
        taps = tl.load(weight + (kh * BK + k)[:, None] * NP + n[None, :])
        total = tl.dot(run, taps, total)
    place = row.to(tl.int64)[:, None] * columns + n[None, :]
    tl.store(out + place, total.to(out.dtype.element_ty), mask=(row < rows)[:, None] & (n < columns)[None, :])


@triton.jit
def weight_gradient(
    x, grad, partial, rows, share, columns, grad_row, size_h, size_w, high, wide, stride_h, stride_w, pad_h, pad_w,
    C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, NP: tl.constexpr,
    BM: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """partial[program, kh, k, n] = Σ over the program's rows of run[row, kh, k] · grad[row, n]."""
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = ()
    for _ in tl.static_range(KH):
        sums = sums + (tl.zeros((BK, BN), tl.float32),)  # noqa: RUF005 (Triton adds tuples but does not unpack them)
    end = tl.minimum((tl.program_id(0) + 1) * share, rows)
    for begin in range(tl.program_id(0) * share, end, BM):
        row = begin + tl.arange(0, BM)
        place = row.to(tl.int64)[:, None] * grad_row + n[None, :]
        g = tl.load(grad + place, mask=(row < end)[:, None] & (n < columns)[None, :], other=0.0)
        added = ()
        for kh in tl.static_range(KH):
            run = _run(x, row, rows, kh, k, size_h, size_w, high, wide, stride_h, stride_w, pad_h, pad_w, C, KW)
            added = added + (tl.dot(tl.trans(run), g, sums[kh]),)  # noqa: RUF005
        sums = added
    for kh in tl.static_range(KH):
        place = ((tl.program_id(0) * KH + kh) * BK + k)[:, None] * NP + n[None, :]
        tl.store(partial + place, sums[kh])
