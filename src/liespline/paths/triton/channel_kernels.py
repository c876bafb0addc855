# mypy: ignore-errors
"""The two Triton kernels of `channels`: sums over rows, and a linear map, with factors by channel.

Column j of a matrix belongs to channel (j // GROUP) % CHANNELS.
"""

import triton
import triton.language as tl


@triton.jit
def sums(
    u, v, shift_u, shift_v, out, rows, share, u_row, v_row, columns,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """out[program, 0 and 1, column] = Σ (u − shift_u) and Σ (u − shift_u)(v − shift_v) over the program's rows."""
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    live = column < columns
    channel = (column // GROUP) % CHANNELS
    less_u = tl.load(shift_u + channel).to(SUMS)[None, :]
    less_v = tl.load(shift_v + channel).to(SUMS)[None, :]
    first = tl.zeros((BR, BC), SUMS)
    second = tl.zeros((BR, BC), SUMS)
    end = tl.minimum((tl.program_id(0) + 1) * share, rows)
    for start in range(tl.program_id(0) * share, end, BR):
        row = (start + tl.arange(0, BR)).to(tl.int64)
        kept = (row < end)[:, None] & live[None, :]
        left = tl.load(u + row[:, None] * u_row + column[None, :], mask=kept, other=0.0).to(SUMS) - less_u
        right = tl.load(v + row[:, None] * v_row + column[None, :], mask=kept, other=0.0).to(SUMS) - less_v
        left = tl.where(kept, left, 0.0)
        first += left
        second += left * right
    place = out + tl.program_id(0).to(tl.int64) * 2 * columns + column
    tl.store(place, tl.sum(first, 0), mask=live)
    tl.store(place + columns, tl.sum(second, 0), mask=live)


@triton.jit
def blend(
    u, v, a, b, c, out, rows, u_row, v_row, columns,
    CHANNELS: tl.constexpr, GROUP: tl.constexpr, BR: tl.constexpr, BC: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """out = a·u + b·v + c, the factors by channel; rows of `out` lie next to each other."""
    column = tl.program_id(1) * BC + tl.arange(0, BC)
    live = column < columns
    channel = (column // GROUP) % CHANNELS
    row = (tl.program_id(0) * BR + tl.arange(0, BR)).to(tl.int64)
    kept = (row < rows)[:, None] & live[None, :]
    left = tl.load(u + row[:, None] * u_row + column[None, :], mask=kept, other=0.0).to(SUMS)
    right = tl.load(v + row[:, None] * v_row + column[None, :], mask=kept, other=0.0).to(SUMS)
    total = left * tl.load(a + channel).to(SUMS)[None, :] + right * tl.load(b + channel).to(SUMS)[None, :]
    total += tl.load(c + channel).to(SUMS)[None, :]
    tl.store(out + row[:, None] * columns + column[None, :], total.to(out.dtype.element_ty), mask=kept)
