"""Triton kernels for CUDA devices: the banded path, and what batch norm sums; absent where Triton is."""

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


def sums_available(x: Tensor) -> bool:
    """Whether `sums` and `blend` take this input."""
    return available(x, ())


def sums(u: Tensor, v: Tensor, shift_u: Tensor, shift_v: Tensor) -> Tensor:
    """Σ (u − shift_u) and Σ (u − shift_u)(v − shift_v) a channel: u, v (B, C, …), shifts (C,) -> (2, C)."""
    from liespline.paths.triton import channels

    return channels.sums(u, v, shift_u, shift_v)


def blend(u: Tensor, v: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a·u + b·v + c with factors a channel: u, v (B, C, …), a, b, c (C,)."""
    from liespline.paths.triton import channels

    return channels.blend(u, v, a, b, c)
