"""Each output group gathers the fields it reads, and correlates them by a grouped convolution."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..layout import fields_last
from ..path import Path, Question, lanes, move
from ..plan import Keep, Part
from ..tables import Table
from . import cudnn
from .reference import doubled, volumes

_NEAR = 768  # channels a convolution steps over from sample to sample before a CPU's caches lose track
_WIDE = 14 * 14  # samples in a window beyond which oneDNN has no fast channels-last convolution


def price(q: Question) -> float:
    """A gather, then a grouped convolution, which is slow on a GPU: there it waits for a single element."""
    if q.cuda and q.elements > 1:
        return math.inf
    own = q.reads * q.inputs[0]
    once = lanes(q.group * q.outputs) * math.prod(q.window) + move(q)
    return q.elements // q.group * own * doubled(q, own, q.window) * once


def correlate(fields: Tensor, blocks: Tensor, part: Part, group: int, stride: Size, padding: Size, _: Keep) -> Tensor:
    """Correlate fields (B, C, R, *space) with blocks (O, A, C, width, *W) -> (B, O, A, *space)."""
    return grouped(fields, blocks, part.tables[group - 1], stride, padding)


PATH = Path("banded", price, correlate)


def grouped(fields: Tensor, kernel: Tensor, table: Table, stride: Size, padding: Size) -> Tensor:
    """Correlate gathered fields by grouped convolutions, channels last.

    out[:,o,g·G+e] = Σ_fc kernel[o,g·G+e,c,f] ⋆ fields[:,c,table.fields[g,f]], with G = A / groups

    fields (B, C, R, *space), kernel (O, A, C, width, *W) -> (B, O, A, *space).
    """
    groups = len(table.fields)
    if fields.is_cuda and groups == 1 and len(stride) > 1:
        return cudnn.convolve(picked(fields, table), kernel, stride, padding)
    kernel = kernel.to(fields.dtype)
    blocks = kernel.permute(1, 0, *range(4, kernel.ndim), 3, 2)  # (A, O, *W, width, C)
    blocks = blocks.flatten(-2).flatten(0, 1).movedim(-1, 1)  # (A·O, width·C, *W)
    outputs = len(blocks) // groups
    last = fields_last(fields)  # (B, *space, R, C)
    at_once = _at_once(fields, kernel, groups)
    parts = []
    for first in range(0, groups, at_once):
        lines = table.fields[first : first + at_once]
        taken = last.index_select(-2, lines.flatten()).flatten(-2).movedim(-1, 1)
        some = blocks[first * outputs : (first + len(lines)) * outputs]
        parts.append(_convolve(taken, some, len(lines), stride, padding))
    out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return out.view(out.shape[0], kernel.shape[1], kernel.shape[0], *out.shape[2:]).transpose(1, 2)


def picked(fields: Tensor, table: Table) -> Tensor:
    """Return the fields that a single group reads: a view where they are neighbours."""
    if table.start is None:
        return fields.index_select(2, table.fields[0])
    return fields.narrow(2, table.start, table.fields.shape[1])


def _at_once(fields: Tensor, kernel: Tensor, groups: int) -> int:
    """How many groups one call convolves: all on a GPU, as many as stay near each other in memory on a CPU."""
    if fields.is_cuda or kernel.ndim == 4:
        return groups
    if kernel.ndim == 7 or math.prod(kernel.shape[4:]) > _WIDE:  # slow when grouped
        return 1
    return min(groups, max(1, _NEAR // (kernel.shape[2] * kernel.shape[3])))


def _convolve(x: Tensor, weight: Tensor, groups: int, stride: Size, padding: Size) -> Tensor:
    match len(stride):
        case 0:
            inputs = x.view(-1, groups, weight.shape[1])
            return torch.einsum("bgi,goi->bgo", inputs, weight.view(groups, -1, weight.shape[1])).flatten(1)
        case 1:  # a second axis, since only images have a channels-last layout
            x, weight = x[:, :, None], weight[:, :, None]
            return F.conv2d(x, weight, None, (1, *stride), (0, *padding), groups=groups)[:, :, 0]
        case 2:
            if not x.is_cuda and math.prod(weight.shape[2:]) > _WIDE:
                x, weight = x.contiguous(), weight.contiguous()
            return F.conv2d(x, weight, None, stride, padding, groups=groups)
        case _:
            return volumes(x, weight, stride, padding, groups)
