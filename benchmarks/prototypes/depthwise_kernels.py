# mypy: ignore-errors
# ruff: noqa: RUF005 (Triton adds tuples but does not unpack them)
"""Depthwise correlation: bandwidth is the limit, so each program reads a line of samples once and keeps what it needs.

A program owns WT output columns of BR images and BC channels and walks down the lines. One line of samples adds to
the KH output lines that read it: their sums are kept in registers, the oldest is complete and leaves. The line after
is loaded before the present one is used.
"""

import triton
import triton.language as tl


@triton.jit
def _line(x, line, height, width, w0, row_stride, batch, b, live, COLUMNS: tl.constexpr):
    # One line of samples as COLUMNS tensors (BR, BC); zero outside the image.
    found = ()
    base = x + (line * width + w0).to(tl.int64) * row_stride
    images = tl.where((line >= 0) & (line < height), batch, 0)
    for i in tl.static_range(COLUMNS):
        here = tl.where((w0 + i >= 0) & (w0 + i < width), images, 0)
        found = found + (tl.load(base + i * row_stride, mask=(b < here)[:, None] & live[None, :], other=0.0),)
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
def correlate(
    x, weight, out, batch, channels, height, width, out_height, out_width, pad_h, pad_w, tiles_w, tiles_c, tiles_h,
    lines, KH: tl.constexpr, KW: tl.constexpr, WT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
    SUMS: tl.constexpr,
):  # fmt: skip
    """out[b,p,c] = Σ over y of x[b, p + y − pad, c] · weight[y,c]; x (B, H, W, C), weight (KH, KW, C)."""
    COLUMNS: tl.constexpr = WT + KW - 1
    c, w0, h0, b, live = _tile(channels, tiles_w, tiles_c, tiles_h, lines, BR, BC, WT)
    taps = ()
    for i in tl.static_range(KH * KW):
        taps = taps + (tl.load(weight + i * channels + c, mask=live, other=0.0).to(SUMS)[None, :],)
    source = x + b[:, None].to(tl.int64) * (height * width) * channels + c[None, :]
    target = out + b[:, None].to(tl.int64) * (out_height * out_width) * channels + c[None, :]
    sums = ()
    for _ in tl.static_range((KH - 1) * WT):
        sums = sums + (tl.zeros((BR, BC), SUMS),)
    last = tl.minimum(h0 + lines, out_height)
    start = h0 - pad_h
    ahead = _line(source, start, height, width, w0 - pad_w, channels, batch, b, live, COLUMNS)
    for step in range(0, last - h0 + KH - 1):
        line = ()
        for i in tl.static_range(COLUMNS):
            line = line + (ahead[i].to(SUMS),)
        ahead = _line(source, start + step + 1, height, width, w0 - pad_w, channels, batch, b, live, COLUMNS)
        # This line is the kernel's line y for the output line y lines above it; sums[0:WT] are the oldest.
        after = ()
        for k in tl.static_range(KH):
            for j in tl.static_range(WT):
                if k < KH - 1:
                    value = sums[k * WT + j]
                else:
                    value = tl.zeros((BR, BC), SUMS)
                for i in tl.static_range(KW):
                    value += line[j + i] * taps[(KH - 1 - k) * KW + i]
                after = after + (value,)
        h = h0 + step - (KH - 1)
        for j in tl.static_range(WT):
            images = tl.where((h >= h0) & (w0 + j < out_width), batch, 0)
            place = (h * out_width + w0 + j).to(tl.int64) * channels
            tl.store(target + place, after[j].to(out.dtype.element_ty), mask=(b < images)[:, None] & live[None, :])
        sums = after[WT:]


@triton.jit
def correlate_weight(
    x, grad, partial, batch, channels, height, width, out_height, out_width, pad_h, pad_w, tiles_w, tiles_c, tiles_h,
    lines, KH: tl.constexpr, KW: tl.constexpr, WT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
    SUMS: tl.constexpr,
):  # fmt: skip
    """partial[tile, y, c] = Σ over b, p of x[b, p + y − pad, c] · grad[b, p, c], one tile of p each."""
    COLUMNS: tl.constexpr = WT + KW - 1
    c, w0, h0, b, live = _tile(channels, tiles_w, tiles_c, tiles_h, lines, BR, BC, WT)
    source = x + b[:, None].to(tl.int64) * (height * width) * channels + c[None, :]
    origin = grad + b[:, None].to(tl.int64) * (out_height * out_width) * channels + c[None, :]
    sums = ()
    for _ in tl.static_range(KH * KW):
        sums = sums + (tl.zeros((BR, BC), SUMS),)
    window = ()  # the gradients of the KH − 1 lines before, oldest first
    for _ in tl.static_range((KH - 1) * WT):
        window = window + (tl.zeros((BR, BC), grad.dtype.element_ty),)
    last = tl.minimum(h0 + lines, out_height)
    start = h0 - pad_h
    x_ahead = _line(source, start, height, width, w0 - pad_w, channels, batch, b, live, COLUMNS)
    g_ahead = _line(origin, h0, last, out_width, w0, channels, batch, b, live, WT)
    for step in range(0, last - h0 + KH - 1):
        line = ()
        for i in tl.static_range(COLUMNS):
            line = line + (x_ahead[i].to(SUMS),)
        window = window + g_ahead
        x_ahead = _line(source, start + step + 1, height, width, w0 - pad_w, channels, batch, b, live, COLUMNS)
        g_ahead = _line(origin, h0 + step + 1, last, out_width, w0, channels, batch, b, live, WT)
        after = ()
        for y in tl.static_range(KH):
            for i in tl.static_range(KW):
                value = sums[y * KW + i]
                for j in tl.static_range(WT):
                    value += line[j + i] * window[(KH - 1 - y) * WT + j].to(SUMS)
                after = after + (value,)
        sums = after
        window = window[WT:]
    tile = (tl.program_id(0) // tiles_c).to(tl.int64)
    for i in tl.static_range(KH * KW):
        place = partial + (tile * (KH * KW) + i) * channels + c
        tl.store(place, tl.sum(sums[i], 0), mask=live)
