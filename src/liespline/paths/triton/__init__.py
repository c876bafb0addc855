"""Triton kernels for CUDA devices: the banded path and batch norm; absent where Triton is."""

import importlib.metadata
import os

import torch
from torch import Tensor

from liespline.paths.plan import Table

Size = tuple[int, ...]
_OLDEST = (3, 6)  # the first version these kernels are tested with
_MOST_TAPS = 20  # along the last axis: more sums than that leave the registers


def _installed() -> bool:
    try:
        version = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return False
    return tuple(int(part) for part in version.split(".")[:2]) >= _OLDEST


_INSTALLED = _installed()


def available(x: Tensor, window: Size) -> bool:
    """Whether the kernels take this input: on a CUDA device since Ampere, or on the CPU in Triton's interpreter."""
    if not _INSTALLED or (window and window[-1] > _MOST_TAPS):
        return False
    if x.is_cuda:
        return x.dtype != torch.float64 and torch.cuda.get_device_properties(x.device).major >= 8
    return os.environ.get("TRITON_INTERPRET") == "1"


def gathered(fields: Tensor, kernel: Tensor, table: Table, stride: Size, padding: Size) -> Tensor:
    """Correlate gathered fields: the arguments and the result of `banded.grouped`, one element a group."""
    from liespline.paths.triton import ops  # here, since importing it needs Triton

    return ops.gathered(fields, kernel, table, stride, padding)


def norm_available(x: Tensor) -> bool:
    """Whether `normalise` takes this input."""
    return available(x, ())


def normalise(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int
) -> tuple[Tensor, Tensor]:
    """pool(relu(batch norm(x))) of (B, C, N_h, *space), and (5, C) facts that begin with mean and variance."""
    from liespline.paths.triton import norm

    return norm.normalise(x, weight, bias, eps, relu, pool)
