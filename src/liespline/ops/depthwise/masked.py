"""Few small fields on a CPU, each with a window of its own: one convolution in which the other windows are zero.

oneDNN takes 30 microseconds for a grouped convolution of any size, in which a dense one has done all these products.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

from ..._check import Size
from ..._torch import real
from ..correlate.reference import CONVOLUTIONS
from ..path import Path, Question

_MOST = 600_000  # products, zeros and all, that take less time than oneDNN does to begin


def price(q: Question) -> float | None:
    """The products of all fields with all."""
    taken = not (q.cuda or q.traced or q.transformed) and q.dtype in (torch.float32, torch.float64)
    terms = q.outputs**2 * math.prod(q.window)
    few = terms * math.prod(q.size) * q.batch <= _MOST
    return terms if taken and few and len(q.window) in (1, 2) else None


def correlate(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    """Correlate each field with its own window: x (B, fields, *space), kernel (fields, *W) -> (B, fields, *space)."""
    # An infinite sample makes other fields NaN, as in every layer that mixes them.
    rows = kernel.unsqueeze(1) * _own(kernel.shape[0], len(stride), kernel.dtype)
    return CONVOLUTIONS[len(stride)](x, rows, None, stride, padding)


@lru_cache(maxsize=32)
def _own(fields: int, d: int, dtype: torch.dtype) -> Tensor:
    with real():
        return torch.eye(fields, dtype=dtype).view(fields, fields, *(1,) * d)


PATH = Path("masked", price, correlate)
