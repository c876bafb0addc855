"""The definition in plain torch: a window of its own for each channel and element of H."""

from __future__ import annotations

import math

from torch import Tensor

from ..._check import Size
from ..correlate.reference import grouped
from ..path import Path, Question


def kernel(weight: Tensor, x_samples: Tensor) -> Tensor:
    """Return k(h⁻¹y)/|det h| by channel and element: weight (C, N_x), x_samples (A, *W, N_x) -> (C, A, *W)."""
    return (weight @ x_samples.flatten(0, -2).T).view(weight.shape[0], *x_samples.shape[:-1])


def price(q: Question) -> float:
    """It takes everything, and whatever else takes a question was faster where it was measured."""
    return math.inf


def correlate(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    """Correlate each field with its own window: x (B, fields, *space), kernel (fields, *W) -> (B, fields, *space)."""
    return grouped(x, kernel.unsqueeze(1).unsqueeze(1), len(kernel), stride, padding).squeeze(2)


PATH = Path("plain", price, correlate)
