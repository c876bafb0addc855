"""The banded path in the separable form: sums along all axes of space but the first, then along that one.

Scaling keeps a product of splines a product, so samples on w₁ × w₂ points are X[y₁,y₂] = Σ_r Q[y₁,r] Z[r,y₂] with as
many terms as there are centres along the axis, however wide the window grows.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..._check import Size
from ..blur import toeplitz
from ..path import Path, Question, lanes, move
from ..plan import Keep, Part
from .banded import grouped
from .reference import doubled


def price(q: Question) -> float | None:
    """The gather, a convolution along the other axes, a product along the first; grouped, so slow on a GPU."""
    if not q.rank:
        return None
    if q.cuda and q.elements > 1:
        return math.inf
    inputs = q.elements // q.group * q.reads * q.inputs[0]
    both = doubled(q, q.reads * q.inputs[0], (1, *q.window[1:]))
    rest = lanes(q.rank * q.group * q.outputs) * math.prod(q.window[1:])
    return inputs * both * (rest + move(q)) + q.elements * q.outputs * q.rank * (q.space[0] + 2 * move(q))


def correlate(
    fields: Tensor, blocks: Tensor, part: Part, group: int, stride: Size, padding: Size, keep: Keep
) -> Tensor:
    """Correlate along all axes but the first, then along that one as a product with banded matrices.

    fields (B, C, R, H, *space), blocks (O, A, C, width, rank, *W') -> (B, O, A, *space).
    """
    assert part.basis is not None
    basis, height = part.basis, fields.shape[3]
    key = part, height, stride[0], padding[0]
    lines = keep(key, lambda: toeplitz(basis, height, stride[0], padding[0]))
    outputs, rank = blocks.shape[0], blocks.shape[4]
    flat = blocks.movedim(4, 0).flatten(0, 1).unsqueeze(4)  # (rank·O, A, C, width, 1, *W')
    sums = grouped(fields, flat, part.tables[group - 1], (1, *stride[1:]), (0, *padding[1:]))
    sums = sums.view(sums.shape[0], rank, outputs, *sums.shape[2:])  # (B, rank, O, A, H, *space)
    return torch.einsum("akrh,broah...->boak...", lines.to(sums.dtype), sums)


PATH = Path("separable", price, correlate, separated=True)
