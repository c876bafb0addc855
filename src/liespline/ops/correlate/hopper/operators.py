"""The banded correlation of bfloat16 fields on a Hopper GPU, as operators that autograd and torch.compile know.

Fields lie innermost in memory, (B, *space, N_h, C), and come out so: a plain tensor (B, C, N_h, *space) whose strides
norms, pools and pointwise operators keep, so that a network of such layers moves nothing between them. This file can be
read without Triton; the kernels are imported when one is first launched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...._check import Size
from ...._torch import constant, real
from ...layout import Order, fields_first, fields_last, output_size
from ...operator import Differentiable, Gradients, Operator, on_its_device
from ...path import Path, Question, move
from ...plan import Keep, Part, distinct
from ...trust import KINDS, Kernels, drawn, off
from . import tiles

Ints = Sequence[int]


def available(device: torch.device, dtype: torch.dtype) -> bool:
    """Say whether these kernels run here: in bfloat16, on compute capability 9.0."""
    return device.type == "cuda" and not off("hopper", device, dtype)


def price(q: Question) -> float | None:
    """The spans of channels that are read, in tiles of which some is wasted; numbers that are moved; launches."""
    if q.transformed or q.group > 1 or len(distinct(q.sizes)) > 1 or not available(q.device, q.dtype):
        return None
    terms = tiles.terms(q)
    if terms is None:
        return None
    moved = q.elements * (q.inputs[0] + q.outputs) + (0 if q.order is Order.FIELDS else math.prod(q.inputs))
    launch = 0.0 if q.traced else 7e10 / max(q.batch * math.prod(q.space), 1)
    return terms + move(q) * moved + launch


def gathered(fields: Tensor, blocks: Tensor, part: Part, _: int, __: Size, padding: Size, ___: Keep) -> Tensor:
    """Correlate gathered fields: element a with those of its line, −1 for none, A lines one after the other.

    fields (B, C, R, *space), blocks (O, A, C, T, *W) -> (B, O, A, *space).
    """
    missing, lines = 3 - len(padding), part.tables[0].lines
    last = fields_last(fields)
    last = last.reshape(len(last), *(1,) * missing, *last.shape[1:])
    if not _readable(last):
        last = last.contiguous()
    kernel = blocks.reshape(*blocks.shape[:4], *(1,) * missing, *blocks.shape[4:])
    _make_table(lines, tuple(kernel.shape[:3]), fields.shape[2], fields.device)
    out: Tensor = correlate(last, kernel, lines, (0,) * missing + padding)
    return fields_first(out.reshape(len(out), *out.shape[1 + missing :]))


PATH = Path("hopper", price, gathered)


@constant
def _make_table(lines: Size, kernel: Size, fields: int, device: torch.device) -> bool:
    """Make a table while a compiler looks on, not in the memory of the graph that it captures later."""
    return _table(lines, kernel, fields, device) is not None


@cache  # for good: captured graphs read it
def _table(lines: Size, kernel: Size, fields: int, device: torch.device) -> Tensor:
    """The numbers of `tiles.tables` on a device, for a kernel of O outputs, A elements and C channels."""
    outputs, elements, channels = kernel
    with real():
        return torch.tensor(tiles.tables(lines, elements, fields, channels, outputs), dtype=torch.int32).to(device)


# ---- operators; fields x (B, D, H, W, R, C), kernels (O, A, C, T, KD, KH, KW), results (B, D, H, W, A, O) ----


@on_its_device
def _forward(x: Tensor, kernel: Tensor, lines: Ints, padding: Ints) -> Tensor:
    from . import launch  # here, since importing it needs Triton

    table = _table(tuple(lines), tuple(kernel.shape[:3]), x.shape[4], x.device)
    return launch.forward(_ready(x), kernel, table, tuple(lines), _size(x, kernel, padding), list(padding))


@on_its_device
def _to_input(grad: Tensor, kernel: Tensor, lines: Ints, padding: Ints, size: Ints, fields: int) -> Tensor:
    from . import launch

    table = _table(tuple(lines), tuple(kernel.shape[:3]), fields, grad.device)
    return launch.input_gradient(_ready(grad), kernel, table, tuple(lines), list(size), fields, list(padding))


@on_its_device
def _to_weight(x: Tensor, grad: Tensor, kernel: Tensor, lines: Ints, padding: Ints) -> Tensor:
    from . import launch

    table, found = _table(tuple(lines), tuple(kernel.shape[:3]), x.shape[4], x.device), _like(kernel)
    launch.weight_gradient(_ready(x), _ready(grad), found, table, tuple(lines), list(padding))
    return found


def _fake_forward(x: Tensor, kernel: Tensor, lines: Ints, padding: Ints) -> Tensor:
    return x.new_empty(len(x), *_size(x, kernel, padding), kernel.shape[1], len(kernel))


def _fake_to_input(grad: Tensor, kernel: Tensor, lines: Ints, padding: Ints, size: Ints, fields: int) -> Tensor:
    return grad.new_empty(len(grad), *size, fields, kernel.shape[2])


def _fake_to_weight(x: Tensor, grad: Tensor, kernel: Tensor, lines: Ints, padding: Ints) -> Tensor:
    return _like(kernel)


# `lines` (A·T) are the fields that each element reads, −1 for none.
_input_gradient = Operator(
    "hopper_input_gradient(Tensor grad, Tensor kernel, SymInt[] lines, SymInt[] padding, SymInt[] size, SymInt fields) "
    "-> Tensor",
    _to_input, _fake_to_input,
)  # fmt: skip
_weight_gradient = Operator(
    "hopper_weight_gradient(Tensor x, Tensor grad, Tensor kernel, SymInt[] lines, SymInt[] padding) -> Tensor",
    _to_weight, _fake_to_weight,
)  # fmt: skip


def _gradients(needs: Sequence[bool], grad: Tensor, x: Tensor, kernel: Tensor, lines: Ints, padding: Ints) -> Gradients:
    size, fields = list(x.shape[1:4]), x.shape[4]
    return (
        _input_gradient(grad, kernel, lines, padding, size, fields) if needs[0] else None,
        _weight_gradient(x, grad, kernel, lines, padding) if needs[1] else None,
    )


def plain(x: Tensor, kernel: Tensor, lines: Ints, padding: Ints) -> Tensor:
    """The same by torch's own operators."""
    read = torch.tensor(list(lines), device=x.device)
    taken = x.index_select(4, read.clamp(min=0)) * (read >= 0).to(x.dtype).unsqueeze(-1)
    weight = kernel.to(x.dtype).transpose(0, 1).transpose(2, 3).flatten(2, 3).flatten(0, 1)  # (A·O, T·C, KD, KH, KW)
    out = F.conv3d(taken.flatten(4).movedim(-1, 1), weight, None, 1, tuple(padding), groups=kernel.shape[1])
    return out.movedim(1, -1).unflatten(-1, (kernel.shape[1], -1))


correlate = Differentiable(
    "hopper(Tensor x, Tensor kernel, SymInt[] lines, SymInt[] padding) -> Tensor",
    _forward, _fake_forward, plain=plain, gradients=_gradients,
)  # fmt: skip


def _images(device: torch.device, dtype: torch.dtype) -> tuple[Differentiable, tuple[Any, ...]]:
    x, kernel = drawn(8, 1, 9, 10, 4, 16), drawn(16, 4, 16, 3, 1, 3, 3, seed=1)
    lines = tuple((a + j) % 4 for a in range(4) for j in (-1, 0, 1))
    return correlate, (x.to(device, dtype), kernel.to(device), lines, (0, 1, 1))


def _volumes(device: torch.device, dtype: torch.dtype) -> tuple[Differentiable, tuple[Any, ...]]:
    x, kernel = drawn(2, 6, 7, 9, 4, 16), drawn(16, 4, 16, 2, 5, 5, 5, seed=1)
    lines = tuple((a + 2 * j) % 4 for a in range(4) for j in range(2))
    return correlate, (x.to(device, dtype), kernel.to(device), lines, (2, 2, 2))


KINDS["hopper"] = Kernels(
    "Hopper kernels", (torch.bfloat16,), "NVIDIA GPUs of compute capability 9.0", lambda found: found == (9, 0),
    (_images, _volumes), (3, 6), interpreted=False,
)  # fmt: skip


def _size(x: Tensor, kernel: Tensor, padding: Ints) -> list[int]:
    return output_size(x.shape[1:4], kernel.shape[4:], (1, 1, 1), padding)


def _like(kernel: Tensor) -> Tensor:
    """Memory for a kernel's gradient, in the kernel's own order with taps evenly apart."""
    return torch.empty_like(kernel.flatten(4)).unflatten(4, kernel.shape[4:])


def _readable(x: Tensor) -> bool:
    """Whether the copy engine reads x where it is: fields together, and steps of 16 bytes."""
    fields, channels = x.shape[4:]
    steps = all(x.stride(i) % 8 == 0 and x.stride(i) >= fields * channels for i in range(4) if x.shape[i] > 1)
    together = x.stride(5) == 1 and (fields == 1 or x.stride(4) == channels)
    return together and steps


def _ready(x: Tensor) -> Tensor:
    """Return x for the copy engine: itself, or where its memory is another, a copy."""
    return x if _readable(x) and x.data_ptr() % 16 == 0 else x.clone(memory_format=torch.contiguous_format)
