"""Batch norm with what follows it, in one pass over memory."""

from __future__ import annotations

from typing import Any

import torch

from ..operator import Differentiable
from ..trust import KINDS, Kernels, drawn, off


def available(device: torch.device, dtype: torch.dtype) -> bool:
    """Say whether our kernels take such numbers: on a CUDA device since Ampere, or in Triton's interpreter."""
    return not off("norm", device, dtype)


def _call(device: torch.device, dtype: torch.dtype) -> tuple[Differentiable, tuple[Any, ...]]:
    from .fused import operator  # here, since importing it needs Triton

    x, weight, bias = drawn(4, 6, 8, 6, 10), drawn(6, seed=1), drawn(6, seed=2)
    exact = torch.promote_types(dtype, torch.float32)
    return operator, (x.to(device, dtype), weight.to(device, exact), bias.to(device, exact), 1e-3, "relu", 2)


KINDS["norm"] = Kernels(
    "norm kernels", (torch.float16, torch.bfloat16, torch.float32), "NVIDIA GPUs since Ampere",
    lambda found: found >= (8, 0), (_call,), (3, 2),
)  # fmt: skip
