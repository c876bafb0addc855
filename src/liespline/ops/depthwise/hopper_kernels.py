# mypy: ignore-errors
# ruff: noqa: RUF005 (Triton adds tuples but does not unpack them)
"""Depthwise correlation: bandwidth is the limit, so each program reads a line of samples once and keeps what it needs.

A program owns WT output columns of BR images and BC channels and walks down the lines. One line of samples adds to
the KH output lines that read it: their sums are kept in registers, the oldest is complete and leaves. The line after
is loaded before the present one is used. Only programs at an edge (EDGE) test columns: half of all instructions would
be such tests otherwise. WHOLE says that images and channels come in whole blocks.
"""

import torch
import triton
import triton.language as tl

_NAMES = {torch.bfloat16: tl.bfloat16, torch.float32: tl.float32, torch.float64: tl.float64}


def dtype(found: torch.dtype) -> tl.dtype:
    """The same number in Triton's language."""
    return _NAMES[found]


@triton.jit
def _line(
    x, line, height, width, w0, row_stride, batch, b, live,
    COLUMNS: tl.constexpr, EDGE: tl.constexpr, PAD: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    # One line of samples as COLUMNS tensors (BR, BC); zero outside the image, any sample where PAD is false.
    found = ()
    if PAD:
        images = tl.where((line >= 0) & (line < height), batch, 0)
    else:
        images = batch
        line = tl.minimum(line, height - 1)
    base = x + (line * width + w0) * row_stride
    for i in tl.static_range(COLUMNS):
        if EDGE:
            here = tl.where((w0 + i >= 0) & (w0 + i < width), images, 0)
            found = found + (tl.load(base + i * row_stride, mask=(b < here)[:, None] & live[None, :], other=0.0),)
        elif WHOLE and not PAD:
            found = found + (tl.load(base + i * row_stride),)
        else:
            mask = (b < images)[:, None] & live[None, :]
            found = found + (tl.load(base + i * row_stride, mask=mask, other=0.0),)
    return found


@triton.jit
def _tile(channels, tiles_w, tiles_c, tiles_h, lines, BR: tl.constexpr, BC: tl.constexpr, WT: tl.constexpr):
    pid = tl.program_id(0)
    c = (pid % tiles_c) * BC + tl.arange(0, BC)
    rest = pid // tiles_c
    w0 = (rest % tiles_w) * WT
    rest = rest // tiles_w
    h0 = (rest % tiles_h) * lines
    b = (rest // tiles_h) * BR + tl.arange(0, BR)
    return c, w0, h0, b, c < channels


@triton.jit
def _walk(
    source, target, taps, b, live, batch, height, width, out_height, out_width, pad_h, w_in, w0, h0, last, C,
    KH: tl.constexpr, KW: tl.constexpr, WT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, SUMS: tl.constexpr,
    EDGE: tl.constexpr, PAD: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    COLUMNS: tl.constexpr = WT + KW - 1
    sums = ()
    for _ in tl.static_range((KH - 1) * WT):
        sums = sums + (tl.zeros((BR, BC), SUMS),)
    start = h0 - pad_h
    ahead = _line(source, start, height, width, w_in, C, batch, b, live, COLUMNS, EDGE, PAD, WHOLE)
    for step in range(0, last - h0 + KH - 1):
        line = ()
        for i in tl.static_range(COLUMNS):
            line = line + (ahead[i].to(SUMS),)
        ahead = _line(source, start + step + 1, height, width, w_in, C, batch, b, live, COLUMNS, EDGE, PAD, WHOLE)
        # This line is the kernel's line y for the output line y lines above it; sums[0:WT] are the oldest.
        after = ()
        for k in tl.static_range(KH):
            for j in tl.static_range(WT):
                if k < KH - 1:
                    value = sums[k * WT + j]
                    for i in tl.static_range(KW):
                        value += line[j + i] * taps[(KH - 1 - k) * KW + i]
                else:
                    value = line[j] * taps[0]
                    for i in tl.static_range(1, KW):
                        value += line[j + i] * taps[i]
                after = after + (value,)
        h = h0 + step - (KH - 1)
        if h >= h0:
            place = target + (h * out_width + w0) * C
            for j in tl.static_range(WT):
                whole = after[j].to(target.dtype.element_ty)
                if EDGE:
                    images = tl.where(w0 + j < out_width, batch, 0)
                    tl.store(place + j * C, whole, mask=(b < images)[:, None] & live[None, :])
                elif WHOLE:
                    tl.store(place + j * C, whole)
                else:
                    tl.store(place + j * C, whole, mask=(b < batch)[:, None] & live[None, :])
        sums = after[WT:]


@triton.jit
def correlate(
    x, weight, out, batch, height, width, out_height, out_width, pad_h, pad_w, tiles_w, tiles_c, tiles_h, lines,
    C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, WT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
    SUMS: tl.constexpr, PAD: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """out[b,p,c] = Σ over y of x[b, p + y − pad, c] · weight[y,c]; x (B, H, W, C), weight (KH, KW, C)."""
    c, w0, h0, b, live = _tile(C, tiles_w, tiles_c, tiles_h, lines, BR, BC, WT)
    taps = ()
    for i in tl.static_range(KH * KW):
        taps = taps + (tl.load(weight + i * C + c, mask=live, other=0.0).to(SUMS)[None, :],)
    source = x + b[:, None].to(tl.int64) * (height * width) * C + c[None, :]
    target = out + b[:, None].to(tl.int64) * (out_height * out_width) * C + c[None, :]
    last = tl.minimum(h0 + lines, out_height)
    if not PAD:
        # The last tile moves in: what it shares with the one before is written twice.
        w0 = tl.minimum(w0, out_width - WT)
    w_in = w0 - pad_w
    if (w_in >= 0) & (w_in + WT + KW - 1 <= width) & (w0 + WT <= out_width):
        _walk(source, target, taps, b, live, batch, height, width, out_height, out_width, pad_h, w_in, w0, h0, last, C,
              KH, KW, WT, BR, BC, SUMS, False, PAD, WHOLE)  # fmt: skip
    else:
        _walk(source, target, taps, b, live, batch, height, width, out_height, out_width, pad_h, w_in, w0, h0, last, C,
              KH, KW, WT, BR, BC, SUMS, True, PAD, WHOLE)  # fmt: skip


@triton.jit
def _gather(
    source, origin, b, live, batch, height, width, out_width, pad_h, w_in, w0, h0, last, C, gradient,
    KH: tl.constexpr, KW: tl.constexpr, WT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, SUMS: tl.constexpr,
    EDGE: tl.constexpr, PAD: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    COLUMNS: tl.constexpr = WT + KW - 1
    sums = ()
    for _ in tl.static_range(KH * KW):
        sums = sums + (tl.zeros((BR, BC), SUMS),)
    window = ()  # the gradients of the KH − 1 lines before, oldest first
    for _ in tl.static_range((KH - 1) * WT):
        window = window + (tl.zeros((BR, BC), gradient),)
    start = h0 - pad_h
    x_ahead = _line(source, start, height, width, w_in, C, batch, b, live, COLUMNS, EDGE, PAD, WHOLE)
    g_ahead = _line(origin, h0, last, out_width, w0, C, batch, b, live, WT, EDGE, True, WHOLE)
    for step in range(0, last - h0 + KH - 1):
        line = ()
        for i in tl.static_range(COLUMNS):
            line = line + (x_ahead[i].to(SUMS),)
        for j in tl.static_range(WT):
            window = window + (g_ahead[j].to(gradient),)
        x_ahead = _line(source, start + step + 1, height, width, w_in, C, batch, b, live, COLUMNS, EDGE, PAD, WHOLE)
        g_ahead = _line(origin, h0 + step + 1, last, out_width, w0, C, batch, b, live, WT, EDGE, True, WHOLE)
        after = ()
        for y in tl.static_range(KH):
            for i in tl.static_range(KW):
                value = sums[y * KW + i]
                for j in tl.static_range(WT):
                    value += line[j + i] * window[(KH - 1 - y) * WT + j].to(SUMS)
                after = after + (value,)
        sums = after
        window = window[WT:]
    return sums


@triton.jit
def _totals(sums, partial, tile, c, live, C, TAPS: tl.constexpr):
    for i in tl.static_range(TAPS):
        tl.store(partial + (tile * TAPS + i) * C + c, tl.sum(sums[i], 0), mask=live)


@triton.jit
def correlate_weight(
    x, grad, partial, batch, height, width, out_height, out_width, pad_h, pad_w, tiles_w, tiles_c, tiles_h, lines,
    C: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, WT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
    SUMS: tl.constexpr, PAD: tl.constexpr, WHOLE: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """partial[tile, y, c] = Σ over b, p of x[b, p + y − pad, c] · grad[b, p, c], one tile of p each."""
    c, w0, h0, b, live = _tile(C, tiles_w, tiles_c, tiles_h, lines, BR, BC, WT)
    source = x + b[:, None].to(tl.int64) * (height * width) * C + c[None, :]
    origin = grad + b[:, None].to(tl.int64) * (out_height * out_width) * C + c[None, :]
    last = tl.minimum(h0 + lines, out_height)
    w_in = w0 - pad_w
    tile = (tl.program_id(0) // tiles_c).to(tl.int64)
    if (w_in >= 0) & (w_in + WT + KW - 1 <= width) & (w0 + WT <= out_width):
        sums = _gather(source, origin, b, live, batch, height, width, out_width, pad_h, w_in, w0, h0, last, C, KEPT,
                       KH, KW, WT, BR, BC, SUMS, False, PAD, WHOLE)  # fmt: skip
        _totals(sums, partial, tile, c, live, C, KH * KW)
    else:
        sums = _gather(source, origin, b, live, batch, height, width, out_width, pad_h, w_in, w0, h0, last, C, KEPT,
                       KH, KW, WT, BR, BC, SUMS, True, PAD, WHOLE)  # fmt: skip
        _totals(sums, partial, tile, c, live, C, KH * KW)
