"""Block sizes of the Triton kernels, from measurements on an H200 at 16 to 64 channels and windows of 5."""

from dataclasses import dataclass
from functools import cache

import torch

_STAGE_BYTES = 64 * 1024  # shared memory for the loads in flight, so that two programs fit a multiprocessor
WIDEST = 320  # columns of sums that fit the registers


@dataclass(frozen=True)
class Tile:
    """A program's share: rows × (taps · outputs) of sums, `inner` terms a step."""

    rows: int
    outputs: int
    inner: int
    pieces: tuple[int, ...]  # powers of two that cover the columns
    warps: int
    stages: int

    @property
    def starts(self) -> tuple[int, ...]:
        """The first column of each piece."""
        return tuple(sum(self.pieces[:i]) for i in range(len(self.pieces)))


@cache
def forward(channels: int, outputs: int, taps: int, dtype: torch.dtype) -> Tile:
    """The tile of a correlation with `taps` samples along the last axis; also that of the input's gradient."""
    block = _block(outputs, WIDEST // taps)
    pieces = _pieces(taps * block, block)
    inner = _block(channels, 128 // dtype.itemsize)
    rows = 128 if sum(pieces) <= 192 and taps <= 32 else 64
    stage = (rows + sum(pieces)) * inner * dtype.itemsize
    return Tile(rows, block, inner, pieces, 4, min(max(_STAGE_BYTES // stage, 2), 5))


@cache
def weight_gradient(outputs: int, taps: int, dtype: torch.dtype) -> Tile:
    """The tile of the kernel's gradient: rows are inputs, and a step sums over `inner` samples."""
    block = _block(outputs, 160 // taps)
    pieces = _pieces(taps * block, block)
    return Tile(128 if sum(pieces) <= 192 else 64, block, 128 // dtype.itemsize, pieces, 4, 3)


def padded(count: int) -> int:
    """Channels or outputs that are computed for `count` of them, in whole blocks."""
    block = _block(count, 64)
    return -(-count // block) * block


def _block(count: int, most: int) -> int:
    """A power of two from 16 to 64: little of it wasted on `count`, but not small, which costs re-reading."""
    sizes = [size for size in (64, 32, 16) if size <= most] or [16]
    return min(sizes, key=lambda size: -(-count // size) * (size + 8))


def _pieces(columns: int, unit: int) -> tuple[int, ...]:
    # The binary digits of the number of columns, none below one output block nor above the widest instruction.
    pieces = []
    while columns > 0:
        pieces.append(max(unit, min(256, 1 << (columns.bit_length() - 1))))
        columns -= pieces[-1]
    return tuple(pieces)
