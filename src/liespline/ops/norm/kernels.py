# mypy: ignore-errors
"""Triton kernels of batch norm with max pooling and an activation behind it: two passes over memory each way.

Feature maps are matrices: one row per sample, columns that are neighbours in memory, column j of channel j // GROUP
modulo CHANNELS: either the GROUP columns of a channel are neighbours, or GROUP is 1 and they are CHANNELS apart.
Pooling windows do not overlap, so every row of the input belongs to one row of the output; the pooled value is found
again wherever it is needed, since reading the input twice costs less than keeping what was found. Strides and the
number of columns come in units of UNIT numbers, which tells the compiler how many it may load at once.
"""

import triton
import triton.language as tl


@triton.jit
def _value(x, row, row_stride, column, kept, scale, shift, EXACT: tl.constexpr):
    sample = tl.load(x + row[:, None] * row_stride + column[None, :], mask=kept, other=0.0).to(EXACT)
    return sample, sample * scale + shift


@triton.jit
def _corner(row, high, wide, POOL: tl.constexpr):
    # The first input row of the window that makes an output row; `high` and `wide` are the output's.
    if POOL == 1:
        return row
    image = row // (high * wide)
    return (image * high * POOL + (row // wide) % high * POOL) * (wide * POOL) + row % wide * POOL


@triton.jit
def _largest(x, corner, row_stride, column, kept, scale, shift, wide, POOL: tl.constexpr, EXACT: tl.constexpr):
    # The largest value of each window, the sample it came from, and which one that was; the first of equals.
    origin, best = _value(x, corner, row_stride, column, kept, scale, shift, EXACT)
    where = tl.zeros(best.shape, tl.int32)
    for i in tl.static_range(1, POOL * POOL):
        row = corner + (i // POOL) * (wide * POOL) + i % POOL
        sample, value = _value(x, row, row_stride, column, kept, scale, shift, EXACT)
        larger = (value > best) | (value != value)  # a NaN stays
        origin = tl.where(larger, sample, origin)
        best = tl.where(larger, value, best)
        where = tl.where(larger, i, where)
    return origin, best, where


@triton.jit
def _activated(value, ACTIVATION: tl.constexpr):
    if ACTIVATION == "relu":
        value = tl.where(value < 0, 0.0, value)  # NaN stays
    if ACTIVATION == "silu":
        value = value / (1 + tl.exp(-value))
    if ACTIVATION == "gelu":
        value = value * _normal(value)
    return value


@triton.jit
def _back(g, value, ACTIVATION: tl.constexpr):
    # A gradient times the activation's derivative at a value.
    if ACTIVATION == "relu":
        g = tl.where(value > 0, g, 0.0)
    if ACTIVATION == "silu":
        share = 1 / (1 + tl.exp(-value))
        g *= share * (1 + value * (1 - share))
    if ACTIVATION == "gelu":
        g *= _normal(value) + value * tl.exp(-0.5 * value * value) * 0.3989422804014327
    return g


@triton.jit
def _normal(value):
    # The share of a normal distribution below a value.
    return 0.5 * (1 + tl.erf(value * 0.7071067811865476))


@triton.jit
def moments(
    x, out, rows, share, row_stride, columns,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, UNIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    """out[program, 0 and 1, column] = Σ (x − s) and Σ (x − s)², where s is the first sample of the channel."""
    row_stride *= UNIT
    columns *= UNIT
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    live = column < columns
    start = tl.load(x + column // GROUP % CHANNELS * GROUP, mask=live, other=0.0).to(EXACT)[None, :]
    first = tl.zeros((BR, BC), EXACT)
    second = tl.zeros((BR, BC), EXACT)
    end = tl.minimum((tl.program_id(0) + 1) * share, rows)
    for begin in range(tl.program_id(0) * share, end, BR):
        row = (begin + tl.arange(0, BR)).to(tl.int64)
        kept = (row < end)[:, None] & live[None, :]
        sample = tl.load(x + row[:, None] * row_stride + column[None, :], mask=kept, other=0.0).to(EXACT)
        away = tl.where(kept, sample - start, 0.0)
        first += away
        second += away * away
    place = out + tl.program_id(0) * 2 * columns + column
    tl.store(place, tl.sum(first, 0), mask=live)
    tl.store(place + columns, tl.sum(second, 0), mask=live)


@triton.jit
def gradient_sums(
    grad, x, facts, out, rows, share, grad_stride, row_stride, columns, high, wide,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, POOL: tl.constexpr, ACTIVATION: tl.constexpr,
    UNIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """out[program, 0 and 1, column] = Σ g and Σ g (x − mean), over what the activation and pooling let through."""
    grad_stride *= UNIT
    row_stride *= UNIT
    columns *= UNIT
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    live = column < columns
    channel = column // GROUP % CHANNELS
    mean = tl.load(facts + channel)[None, :]
    scale = tl.load(facts + 3 * CHANNELS + channel)[None, :]
    shift = tl.load(facts + 4 * CHANNELS + channel)[None, :]
    first = tl.zeros((BR, BC), EXACT)
    second = tl.zeros((BR, BC), EXACT)
    end = tl.minimum((tl.program_id(0) + 1) * share, rows)
    for begin in range(tl.program_id(0) * share, end, BR):
        row = (begin + tl.arange(0, BR)).to(tl.int64)
        kept = (row < end)[:, None] & live[None, :]
        corner = _corner(row, high, wide, POOL)
        origin, best, _ = _largest(x, corner, row_stride, column, kept, scale, shift, wide, POOL, EXACT)
        g = tl.load(grad + row[:, None] * grad_stride + column[None, :], mask=kept, other=0.0).to(EXACT)
        g = _back(g, best, ACTIVATION)
        first += g
        second += g * (origin - mean)
    place = out + tl.program_id(0) * 2 * columns + column
    tl.store(place, tl.sum(first, 0), mask=live)
    tl.store(place + columns, tl.sum(second, 0), mask=live)


@triton.jit
def _totals(
    partial, programs, columns,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, OWN: tl.constexpr, BP: tl.constexpr, BG: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    # Both sums of this program's channel, over all partial sums and all OWN columns of the channel.
    inside = tl.arange(0, BG)
    column = tl.program_id(0) * GROUP + inside
    if GROUP == 1:
        column = tl.program_id(0) + inside * CHANNELS
    first = tl.zeros((BP, BG), EXACT)
    second = tl.zeros((BP, BG), EXACT)
    for begin in range(0, programs, BP):
        program = begin + tl.arange(0, BP)
        kept = (program < programs)[:, None] & (inside < OWN)[None, :]
        place = partial + program[:, None] * 2 * columns + column[None, :]
        first += tl.load(place, mask=kept, other=0.0)
        second += tl.load(place + columns, mask=kept, other=0.0)
    return tl.sum(tl.sum(first, 1), 0), tl.sum(tl.sum(second, 1), 0)


@triton.jit
def _move(place, value, rate, EXACT: tl.constexpr):
    before = tl.load(place).to(EXACT)
    tl.store(place, (before + rate * (value - before)).to(place.dtype.element_ty))


@triton.jit
def finish_moments(
    partial, x, weight, bias, facts, running_mean, running_variance, batches, programs, columns, count, eps, rate,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, OWN: tl.constexpr, AFFINE: tl.constexpr, REMEMBER: tl.constexpr,
    COUNT: tl.constexpr, BP: tl.constexpr, BG: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """facts (5, C) = mean, variance, 1/√(variance + eps), scale and shift; one program per channel.

    With REMEMBER the running mean and the running unbiased variance move towards the batch's own by `rate`.
    """
    channel = tl.program_id(0)
    first, second = _totals(partial, programs, columns, CHANNELS, GROUP, OWN, BP, BG, EXACT)
    away = first / count
    mean = tl.load(x + channel * GROUP).to(EXACT) + away
    variance = second / count - away * away
    variance = tl.where(variance < 0, 0.0, variance)  # NaN stays
    inverse = 1 / tl.sqrt(variance + eps)
    scale = inverse
    shift = -mean * inverse
    if AFFINE:
        scale = inverse * tl.load(weight + channel).to(EXACT)
        shift = tl.load(bias + channel).to(EXACT) - mean * scale
    tl.store(facts + channel, mean)
    tl.store(facts + CHANNELS + channel, variance)
    tl.store(facts + 2 * CHANNELS + channel, inverse)
    tl.store(facts + 3 * CHANNELS + channel, scale)
    tl.store(facts + 4 * CHANNELS + channel, shift)
    if REMEMBER:
        _move(running_mean + channel, mean, rate, EXACT)
        _move(running_variance + channel, variance * count / (count - 1), rate, EXACT)
    if COUNT:  # noqa: SIM102 (Triton before 3.4 compiles what stands behind "and" too)
        if channel == 0:
            tl.store(batches, tl.load(batches) + 1)


@triton.jit
def finish_gradient(
    partial, facts, terms, programs, columns, count,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, OWN: tl.constexpr, BP: tl.constexpr, BG: tl.constexpr,
    EXACT: tl.constexpr,
):  # fmt: skip
    """terms (4, C) = gradients of weight and bias, and slope and offset of dx = scale·g + slope·x + offset."""
    channel = tl.program_id(0)
    first, second = _totals(partial, programs, columns, CHANNELS, GROUP, OWN, BP, BG, EXACT)
    mean = tl.load(facts + channel)
    inverse = tl.load(facts + 2 * CHANNELS + channel)
    scale = tl.load(facts + 3 * CHANNELS + channel)
    slope = -scale * inverse * inverse * second / count
    tl.store(terms + channel, second * inverse)
    tl.store(terms + CHANNELS + channel, first)
    tl.store(terms + 2 * CHANNELS + channel, slope)
    tl.store(terms + 3 * CHANNELS + channel, -scale * first / count - slope * mean)


@triton.jit
def apply(
    x, facts, out, rows, row_stride, columns, high, wide,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, POOL: tl.constexpr, ACTIVATION: tl.constexpr,
    UNIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """out = activation(pool(scale·x + shift))."""
    row_stride *= UNIT
    columns *= UNIT
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    channel = column // GROUP % CHANNELS
    scale = tl.load(facts + 3 * CHANNELS + channel)[None, :]
    shift = tl.load(facts + 4 * CHANNELS + channel)[None, :]
    row = (tl.program_id(0) * BR + tl.arange(0, BR)).to(tl.int64)
    kept = (row < rows)[:, None] & (column < columns)[None, :]
    corner = _corner(row, high, wide, POOL)
    _, best, _ = _largest(x, corner, row_stride, column, kept, scale, shift, wide, POOL, EXACT)
    best = _activated(best, ACTIVATION)
    tl.store(out + row[:, None] * columns + column[None, :], best.to(out.dtype.element_ty), mask=kept)


@triton.jit
def gradient(
    grad, x, facts, terms, out, rows, grad_stride, row_stride, columns, high, wide,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, POOL: tl.constexpr, ACTIVATION: tl.constexpr,
    UNIT: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, EXACT: tl.constexpr,
):  # fmt: skip
    """out = scale·g + slope·x + offset, with g at the sample that each pooled value came from."""
    grad_stride *= UNIT
    row_stride *= UNIT
    columns *= UNIT
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    channel = column // GROUP % CHANNELS
    scale = tl.load(facts + 3 * CHANNELS + channel)[None, :]
    shift = tl.load(facts + 4 * CHANNELS + channel)[None, :]
    slope = tl.load(terms + 2 * CHANNELS + channel)[None, :]
    offset = tl.load(terms + 3 * CHANNELS + channel)[None, :]
    row = (tl.program_id(0) * BR + tl.arange(0, BR)).to(tl.int64)
    kept = (row < rows)[:, None] & (column < columns)[None, :]
    corner = _corner(row, high, wide, POOL)
    _, best, where = _largest(x, corner, row_stride, column, kept, scale, shift, wide, POOL, EXACT)
    g = tl.load(grad + row[:, None] * grad_stride + column[None, :], mask=kept, other=0.0).to(EXACT) * scale
    g = _back(g, best, ACTIVATION)
    for i in tl.static_range(POOL * POOL):
        here = corner + (i // POOL) * (wide * POOL) + i % POOL
        sample, _ = _value(x, here, row_stride, column, kept, scale, shift, EXACT)
        back = tl.where(where == i, g, 0.0) + slope * sample + offset
        tl.store(out + here[:, None] * columns + column[None, :], back.to(out.dtype.element_ty), mask=kept)
