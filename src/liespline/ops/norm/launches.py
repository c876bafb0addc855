"""How a feature map `(B, C, N_h, *space)` lies in memory, and what the kernels of a norm are told of it.

Each layout is a matrix whose columns lie next to each other in memory: C innermost, N_h·C with C innermost, or C·N_h
with N_h innermost, and perhaps a gap after each row. Any other is copied into the last one first.
"""

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..layout import Order, order_of

_PROGRAMS = 1024  # that share a sum
_UNIT = 8  # numbers that one load may take
_READ = (2048, 128)  # samples and most columns of a block that is read
_WRITTEN = (1024, 512)  # of one whose windows are written as well


class Matrix(NamedTuple):
    """A feature map as rows × columns, column j of channel j // group modulo the number of channels."""

    rows: int
    columns: int
    stride: int  # from row to row
    group: int


def as_matrix(x: Tensor) -> Matrix | None:
    """How `x` lies in memory, None for any other layout; no number is moved."""
    inner = _inner(x)
    group = x.shape[2] if inner == (1, 2) else 1
    if x.stride(1) != group or (group > 1 and x.stride(2) != 1):
        return None
    outer = [(x.shape[i], x.stride(i)) for i in range(x.ndim) if i not in inner and x.shape[i] > 1]
    if any(before != size * after for (_, before), (size, after) in pairwise(outer)):
        return None
    columns = math.prod(x.shape[i] for i in inner)
    stride = outer[-1][1] if outer else columns
    return Matrix(x.numel() // columns, columns, stride, group) if stride >= columns else None


def _inner(x: Tensor) -> tuple[int, ...]:
    """The axes of a row, the innermost last."""
    order = order_of(x)
    return (2, 1) if order is Order.FIELDS else (1,) if order is Order.CHANNELS or x.ndim < 4 else (1, 2)


def ordered(x: Tensor) -> Tensor:
    """The feature map itself if it is a matrix, else its copy with channels and elements innermost."""
    if as_matrix(x) is not None:
        return x
    inner = (2, 1) if order_of(x) is Order.FIELDS else (1, 2) if x.ndim > 3 else (1,)
    back = tuple(range(-len(inner), 0))
    return x.movedim(inner, back).contiguous().movedim(back, inner)


def empty(x: Tensor, space: tuple[int, ...]) -> Tensor:
    """New memory for a feature map of another space, with the axes in the order of x and no gaps."""
    inner = _inner(x)
    order = [*(i for i in range(x.ndim) if i not in inner), *inner]
    shape, strides, step = (*x.shape[: x.ndim - len(space)], *space), [0] * x.ndim, 1
    for i in reversed(order):
        strides[i], step = step, step * shape[i]
    return x.new_empty_strided(shape, strides)  # not a permuted view, which nobody may change in place


# ---- launches ----


class Launches(NamedTuple):
    """All that the kernels are told of a feature map besides memory, the same in every step of a training."""

    columns: int
    samples: int  # of a channel
    programs: int  # that share a sum, along the rows
    sums: tuple[int, int]  # grid of the kernel that reads
    written: tuple[int, int]  # grid of the kernel that writes
    numbers: tuple[int, ...]
    options: tuple[dict[str, Any], dict[str, Any], dict[str, Any]]  # of the kernels that read, finish and write
    shape: tuple[int, ...]  # of what is written
    strides: tuple[int, ...]


@lru_cache(maxsize=1024)
def forward_launches(shape: tuple[int, ...], strides: tuple[int, ...], pool: int, exact: torch.dtype) -> Launches:
    """The launches of the norm itself."""
    x = torch.empty_strided(shape, strides, device="meta")
    lay, block = _matrix(x), _block(_matrix(x))
    share, programs = _shares(lay, lay.rows)
    wide = triton.cdiv(lay.columns, block["BC"])
    out = empty(x, space_of(x, pool))
    rows = lay.rows // pool**2
    unit = math.gcd(_UNIT, lay.stride, lay.columns)
    common: dict[str, Any] = {"CHANNELS": shape[1], "GROUP": lay.group, "EXACT": _tl(exact)}
    return Launches(
        lay.columns, x.numel() // shape[1], programs, (programs, wide), (triton.cdiv(rows, block["BR"]), wide),
        (lay.rows, share, rows, lay.stride // unit, lay.columns // unit, *_window(out, pool)),
        ({"UNIT": unit} | block | common, _small(lay, x) | common, {"POOL": pool, "UNIT": unit} | block | common),
        tuple(out.shape), out.stride(),
    )  # fmt: skip


@lru_cache(maxsize=1024)
def backward_launches(
    shape: tuple[int, ...], strides: tuple[int, ...], grad_shape: tuple[int, ...], grad_strides: tuple[int, ...],
    activation: str, pool: int, exact: torch.dtype,
) -> Launches | None:  # fmt: skip
    """The launches of its gradient; None where that lies in memory in another order than x."""
    x, grad = (torch.empty_strided(*lies, device="meta") for lies in ((shape, strides), (grad_shape, grad_strides)))
    lay, from_out = _matrix(x), as_matrix(grad)
    if from_out is None or (from_out.group, from_out.columns) != (lay.group, lay.columns):
        return None
    block, written = _block(lay), _block(lay, _WRITTEN)
    share, programs = _shares(lay, from_out.rows)
    out = empty(x, space_of(x))
    unit = math.gcd(_UNIT, from_out.stride, lay.stride, lay.columns)
    common: dict[str, Any] = {"CHANNELS": shape[1], "GROUP": lay.group, "EXACT": _tl(exact)}
    through = {"POOL": pool, "ACTIVATION": activation, "UNIT": unit} | common
    sums = programs, triton.cdiv(lay.columns, block["BC"])
    writes = triton.cdiv(from_out.rows, written["BR"]), triton.cdiv(lay.columns, written["BC"])
    sizes = from_out.stride // unit, lay.stride // unit, lay.columns // unit
    return Launches(
        lay.columns, x.numel() // shape[1], programs, sums, writes,
        (from_out.rows, share, *sizes, *_window(grad, pool)),
        (block | through, _small(lay, x) | common, written | through),
        tuple(out.shape), out.stride(),
    )  # fmt: skip


def _matrix(x: Tensor) -> Matrix:
    found = as_matrix(x)
    assert found is not None
    return found


def space_of(x: Tensor, pool: int = 1) -> tuple[int, ...]:
    """The space of a feature map, pooled."""
    return tuple(n // pool for n in x.shape[3 if x.ndim > 3 else 2 :])


def _window(out: Tensor, pool: int) -> tuple[int, int]:
    return (out.shape[-2], out.shape[-1]) if pool > 1 else (1, 1)


def _tl(dtype: torch.dtype) -> tl.dtype:
    return tl.float64 if dtype == torch.float64 else tl.float32


def _shares(lay: Matrix, rows: int) -> tuple[int, int]:
    """How many rows a program adds up, and how many programs there are."""
    height = _block(lay)["BR"]
    share = triton.cdiv(triton.cdiv(rows, _PROGRAMS), height) * height
    return share, triton.cdiv(rows, share)


def _block(lay: Matrix, most: tuple[int, int] = _READ) -> dict[str, int]:
    """Rows and columns of a block, of sizes that were fastest on an H200."""
    wide = min(max(triton.next_power_of_2(lay.columns), 16), most[1])
    return {"BR": most[0] // wide, "BC": wide}


def _small(lay: Matrix, x: Tensor) -> dict[str, int]:
    group = triton.next_power_of_2(own := lay.columns // x.shape[1])  # columns of a channel
    return {"OWN": own, "BP": max(1024 // group, 1), "BG": group}
