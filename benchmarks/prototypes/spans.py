"""Which channels each element reads, as spans of equal width, and kernels packed to fit them."""

from typing import NamedTuple

import torch
from torch import Tensor


class Spans(NamedTuple):
    """The spans of A elements that read T fields of C channels, `width` channels each."""

    starts: Tensor  # (A, S) int32, the first channel of a span
    index: Tensor  # (A, S·width) into T·C, or T·C where a channel is not read
    places: Tensor  # (A, T·C) into S·width
    width: int


def spans(table: Tensor, channels: int, width: int) -> Spans:
    """Cover the fields (A, T) of each element by spans; neighbouring fields share one where they can.

    A span starts at a multiple of 16 channels: memory is read in sectors of 32 bytes.
    """
    lines = [_cover(fields, channels, width) for fields in table.tolist()]
    most = max(len(starts) for starts, _ in lines)
    starts = torch.zeros(len(lines), most, dtype=torch.int32)
    index = torch.full((len(lines), most * width), table.shape[1] * channels)
    for a, (first, read) in enumerate(lines):
        starts[a, : len(first)] = torch.tensor(first, dtype=torch.int32)
        index[a, : len(read)] = torch.tensor(read)
    places = torch.empty(len(lines), table.shape[1] * channels + 1, dtype=torch.long)
    places.scatter_(1, index, torch.arange(most * width).expand_as(index))
    device = table.device
    return Spans(starts.to(device), index.to(device), places[:, :-1].contiguous().to(device), width)


def _cover(fields: list[int], channels: int, width: int) -> tuple[list[int], list[int]]:
    wanted = {field * channels + c: t * channels + c for t, field in enumerate(fields) for c in range(channels)}
    nothing = len(fields) * channels
    starts, read = [], []
    left = sorted(wanted)
    while left:
        unit = min(16, width)
        starts.append(left[0] // unit * unit)
        here = range(starts[-1], starts[-1] + width)
        read += [wanted.pop(c, nothing) for c in here]
        left = sorted(wanted)
    return starts, read


def pack(kernel: Tensor, spans: Spans, lines: int, outputs: int) -> Tensor:
    """Kernels (A, T, KD, KH, KW, C, O) -> (A, KD, KH + lines − 1, S, KW, lines·outputs, width).

    Input line i of a tile meets output line l of it in the kernel's line i − l.
    """
    a, t, kd, kh, kw, c, o = kernel.shape
    flat = kernel.permute(0, 2, 3, 4, 6, 1, 5).reshape(a, kd, kh, kw, o, t * c)
    flat = torch.nn.functional.pad(flat, (0, 1, 0, outputs - o))
    index = spans.index[:, None, None, None, None].expand(a, kd, kh, kw, outputs, -1)
    wide = flat.gather(-1, index).unflatten(-1, (-1, spans.width))  # (A, KD, KH, KW, outputs, S, width)
    wide = wide.permute(0, 1, 2, 5, 3, 4, 6)  # (A, KD, KH, S, KW, outputs, width)
    if lines == 1:
        return wide.contiguous()
    packed = wide.new_zeros(a, kd, kh + lines - 1, wide.shape[3], kw, lines, outputs, spans.width)
    for line in range(lines):
        packed[:, :, line : line + kh, :, :, line] = wide
    return packed.flatten(5, 6)


def unpack(sums: Tensor, spans: Spans, planes: int, height: int, channels: int, outputs: int) -> Tensor:
    """Sums (A, groups, KW, MB·width, OP), blocks in the order (plane, line, span) -> (A, T, KD, KH, KW, C, O)."""
    a, _, kw = sums.shape[:3]
    count = spans.starts.shape[1]
    blocks = sums.unflatten(3, (-1, spans.width)).transpose(2, 3).flatten(1, 2)  # (A, blocks, KW, width, OP)
    blocks = blocks[:, : planes * height * count, :, :, :outputs].unflatten(1, (planes, height, count))
    rows = blocks.permute(0, 1, 2, 4, 6, 3, 5).reshape(a, planes, height, kw, outputs, -1)  # … S·width
    index = spans.places[:, None, None, None, None].expand(a, planes, height, kw, outputs, -1)
    found = rows.gather(-1, index).unflatten(-1, (-1, channels))  # (A, KD, KH, KW, O, T, C)
    return found.permute(0, 5, 1, 2, 3, 6, 4)
