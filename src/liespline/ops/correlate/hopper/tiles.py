"""How the work of the Hopper kernels is cut: spans of channels, tiles of samples, and how much of a tile is wasted.

Fields lie innermost, (B, D, H, W, R, C). What an element reads is covered by spans of equal width; neighbouring fields
share spans. A tile's rows are (column, plane, image); planes × images is a multiple of eight, after which the layout of
shared memory repeats, so the samples of the next tap along W are the same rows that many further on.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

from ...._check import Size
from ...path import Question

_SECTOR = 16  # numbers that memory reads at a time: where a span may start
_SHARED = 200 * 1024  # bytes of shared memory for the copies in flight
_MULTIPROCESSORS = 132
_SUMS = 40_960  # that fit the registers of a program


class Cover(NamedTuple):
    """Spans that cover what each element reads: `starts` (A, S) channels, `entries` (A, S·width) or −1 for nothing."""

    starts: tuple[tuple[int, ...], ...]
    entries: tuple[tuple[int, ...], ...]
    width: int


class Tile(NamedTuple):
    """A program's share of a correlation: columns × planes × images of so many output lines."""

    columns: int
    planes: int
    images: int
    lines: int
    stages: int
    each: int  # programs on a multiprocessor

    @property
    def registers(self) -> int:
        """For a thread, of which a program has 384: eight warps multiply, four more belong to the one that copies."""
        return min(168, 65536 // self.each // 384 // 8 * 8)


class Slab(NamedTuple):
    """A program's share of a correlation of volumes: eight columns of PAIRS · 2 output lines."""

    planes: int
    images: int
    pairs: int


class WeightTile(NamedTuple):
    """A program's share of the kernel's gradient: `blocks` spans against 64 samples a step, and splits of the sum."""

    columns: int
    planes: int
    images: int
    blocks: int
    groups: int  # programs that share the spans of an element
    splits: int
    stages: int
    keep: int  # rows of samples that wait in registers, where wgmma would read them again for every tap


def padded(outputs: int) -> int:
    """Outputs as wgmma takes them."""
    return max(16, 1 << (outputs - 1).bit_length())


def aligned(outputs: int) -> int:
    """Outputs as the kernel's gradient reads them, from a multiple of 16 bytes on."""
    return padded(outputs if outputs % 8 == 0 else outputs + 7)


class Covers(NamedTuple):
    """The spans of all three passes."""

    forward: Cover
    back: Cover  # of the input's gradient: what each field's readers send
    weight: Cover


@cache
def covers(flat: Size, elements: int, fields: int, channels: int, outputs: int) -> Covers:
    """Cover what a layer reads, its lines (A·T) laid out flat; an entry is (a·T + t) · channels + channel."""
    count = len(flat) // elements
    lines = [flat[a * count : (a + 1) * count] for a in range(elements)]
    reads = [[(f, a * count + t) for t, f in enumerate(line) if f >= 0] for a, line in enumerate(lines)]
    sends: list[list[tuple[int, int]]] = [[] for _ in range(fields)]
    for a, line in enumerate(reads):
        for field, block in line:
            sends[field].append((a, block))
    return Covers(
        _cover(reads, channels, 32), _cover(sends, outputs, 32), _cover(reads, channels, 64 if outputs == 64 else 32)
    )


def tables(flat: Size, elements: int, fields: int, channels: int, outputs: int) -> list[int]:
    """What the kernels look up, one after the other: starts and entries of all passes, see `Covers`, and `places`."""
    found = covers(flat, elements, fields, channels, outputs)
    numbers = [n for c in found for lines in (c.starts, c.entries) for line in lines for n in line]
    return numbers + [n for line in places(found.weight, len(flat) // elements, channels) for n in line]


def places(covered: Cover, count: int, channels: int) -> list[list[int]]:
    """Where in the cover of an element each channel of its `count` blocks lies, −1 where it is not read."""
    found = []
    for element, entries in enumerate(covered.entries):
        line = [-1] * (count * channels)
        for place, entry in enumerate(entries):
            if entry >= 0:
                line[entry - element * count * channels] = place
        found.append(line)
    return found


def _cover(lines: list[list[tuple[int, int]]], channels: int, widest: int) -> Cover:
    """Cover the (field, block) pairs of each element by spans of the width that costs least."""
    widths = [width for width in (64, 32, 16) if width <= widest and (width < 64 or channels % 64 == 0)]
    return min((_spans(lines, channels, width) for width in widths), key=lambda c: len(c.starts[0]) * (c.width + 8))


def _spans(lines: list[list[tuple[int, int]]], channels: int, width: int) -> Cover:
    starts, entries = [], []
    for line in lines:
        wanted = {field * channels + c: block * channels + c for field, block in line for c in range(channels)}
        first: list[int] = []
        read: list[int] = []
        for channel in sorted(wanted):
            if not first or channel >= first[-1] + width:
                first.append(channel // _SECTOR * _SECTOR)
                read += [wanted.get(c, -1) for c in range(first[-1], first[-1] + width)]
        starts.append(first)
        entries.append(read)
    most = max(1, *map(len, starts))
    return Cover(
        tuple((*first, *[0] * (most - len(first))) for first in starts),
        tuple((*read, *[-1] * (most * width - len(read))) for read in entries),
        width,
    )


@cache
def tile(batch: int, size: Size, taps: int, elements: int, outputs: int, width: int) -> Tile:
    """The tile of a correlation to `size` = (D, H, W) with `taps` along W; fitted on an H200."""
    n = padded(outputs)
    lines = min(max(1, 64 // n), 4 if size[1] > 2 else 1)
    found, lowest = None, math.inf
    for rows, each in ((512, 1), (256, 2)):
        for images, planes in _crowds(batch, size[0]):
            columns = rows // (images * planes)
            stage = ((columns + taps - 1) * images * planes + taps * lines * n) * width * 2
            stages = min(_SHARED // each // stage, 4)
            counts = zip((batch, *size), (images, planes, lines, columns), strict=True)
            tiles = elements * math.prod(-(-n // unit) for n, unit in counts)
            rounds = -(-tiles // (_MULTIPROCESSORS * each))
            # Columns that a tile reads beside its own cost less than those it computes.
            cost = rounds * each * rows * (1 + 0.25 * (taps - 1) / columns)
            if columns <= 64 and stages > 1 and cost < lowest:
                found, lowest = Tile(columns, planes, images, lines, stages, each), cost
    assert found is not None
    return found


def slab(batch: int, size: Size, window: Size, outputs: int, width: int) -> Slab | None:
    """The tile of volumes with 16 channels, None for all else: `slab_kernels` says why fewer outputs were wrong."""
    if size[0] == 1 or window[1:] != (5, 5) or (outputs, width) != (16, 16):
        return None
    images = 2 if batch > 1 else 1
    return Slab(8 // images, images, min((6, 5, 4), key=lambda pairs: _filled(size[1], 2 * pairs)))


@cache
def weight_tile(
    batch: int, depth: int, wide: int, window: Size, elements: int, spans: int, width: int, outputs: int
) -> WeightTile:
    """The tile of the kernel's gradient, for samples `wide` along W and gradients `depth` along D."""
    n, taps = aligned(outputs), window[2]
    m = 256 if taps * 256 * n <= _SUMS else 128
    blocks = m // width
    groups = -(-window[0] * window[1] * spans // blocks)
    found, lowest = (8, 1, 8), math.inf
    for images, planes in _crowds(batch, depth, most=16):
        columns = 64 // (images * planes)
        cost = _filled(batch, images) * _filled(depth, planes) * _filled(wide, columns)
        if cost < lowest:
            found, lowest = (columns, planes, images), cost
    columns, planes, images = found
    stage = (64 * m + (columns + taps - 1) * images * planes * n) * 2
    programs = elements * groups
    splits = min(range(1, 17), key=lambda s: -(-programs * s // _MULTIPROCESSORS) / s + 0.01 * s)
    return WeightTile(columns, planes, images, blocks, groups, splits, min(6, _SHARED // stage), 64 if n <= 32 else 0)


def terms(q: Question) -> float | None:
    """What the products of a layer cost, in multiplications of cuDNN: a fit to measured times; None if too large."""
    if not _takes(q):
        return None
    inside, outside = q.fields * q.inputs[0], q.elements * q.outputs
    if inside % 8 or outside % 8:  # not a multiple of the 16 bytes that are copied
        return None
    if max(inside * math.prod(q.space), outside * math.prod(q.size)) >= 2**31:  # places in an image are 32 bits
        return None
    spans = q.reads * q.inputs[0] + (16 * q.runs if q.inputs[0] % _SECTOR else 0)
    waste = (_waste(q.space) + _waste(q.size)) / 2
    return 0.8 * q.elements * spans * math.prod(q.window) * (padded(q.outputs) + 16) * waste


def _takes(q: Question) -> bool:
    """Whether images and planes fill a swizzle, sums fit the registers, and every sample reads something."""
    if len(q.size) < 2 or max(q.stride) > 1 or min(*q.size, q.batch) < 1:
        return False
    taps, both = q.window[-1], (q.inputs[0], q.outputs)
    sums = taps in (3, 5, 7) and max(both) <= 64 and taps * 128 * aligned(q.outputs) <= _SUMS
    if len(q.size) > 2 and min(both) <= 16 and (*both, *q.window) != (16, 16, 5, 5, 5):  # as far as shown right
        return False
    crowd = q.batch * q.size[0] if len(q.size) > 2 else q.batch
    return sums and 2 * crowd >= 8 and all(p < k for p, k in zip(q.padding, q.window, strict=True))


def _waste(space: Size) -> float:
    """Samples computed for each one wanted, in tiles of eight columns and two lines."""
    high, wide = space[-2:]
    return _filled(wide, 8) / wide * _filled(high, 2) / high


def _crowds(batch: int, depth: int, most: int = 32) -> list[tuple[int, int]]:
    """Images × planes that make a multiple of eight, the most images first."""
    found = [
        (i, p) for i in (32, 16, 8, 4, 2, 1) for p in (1, 2, 4, 8, 16, 32) if i * p in (8, 16, 32) and i * p <= most
    ]
    return [pair for pair in found if depth > 1 or pair[1] == 1]


def _filled(size: int, unit: int) -> int:
    return -(-size // unit) * unit
