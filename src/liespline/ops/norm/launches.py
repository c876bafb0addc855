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


Told = dict[str, Any]


class Launches(NamedTuple):
    """What the three kernels of a direction are told besides tensors, by name; the same in every step of a training.

    One adds up, in programs that share the rows; one program per channel finishes the sums; one writes.
    """

    sums: tuple[int, int]  # grids
    writes: tuple[int, int]
    adding: Told
    finishing: Told
    writing: Told
    shape: tuple[int, ...]  # of what is written
    strides: tuple[int, ...]


@lru_cache(maxsize=1024)
def forward_launches(
    shape: tuple[int, ...], strides: tuple[int, ...], activation: str, pool: int, exact: torch.dtype
) -> Launches:
    """The launches of the norm itself."""
    x = torch.empty_strided(shape, strides, device="meta")
    lay, out = _matrix(x), empty(x, space_of(x, pool))
    rows, block = lay.rows // pool**2, _block(lay)
    wide = triton.cdiv(lay.columns, block["BC"])
    unit = math.gcd(_UNIT, lay.stride, lay.columns)
    both = _channels(lay, x, exact)
    read = {"row_stride": lay.stride // unit, "columns": lay.columns // unit, "UNIT": unit} | block | both
    programs, adding = _shares(lay, lay.rows)
    return Launches(
        (programs, wide), (triton.cdiv(rows, block["BR"]), wide),
        adding | read, _finishing(lay, x, programs) | both,
        {"rows": rows, "POOL": pool, "ACTIVATION": activation} | _window(out, pool) | read,
        tuple(out.shape), out.stride(),
    )  # fmt: skip


@lru_cache(maxsize=1024)
def backward_launches(
    shape: tuple[int, ...], strides: tuple[int, ...], grad_shape: tuple[int, ...], grad_strides: tuple[int, ...],
    activation: str, pool: int, exact: torch.dtype,
) -> Launches | None:  # fmt: skip
    """The launches of its gradient; None where that lies in memory in another order than x."""
    x, grad = (torch.empty_strided(*lies, device="meta") for lies in ((shape, strides), (grad_shape, grad_strides)))
    lay, from_out, out = _matrix(x), as_matrix(grad), empty(x, space_of(x))
    if from_out is None or (from_out.group, from_out.columns) != (lay.group, lay.columns):
        return None
    block, written = _block(lay), _block(lay, _WRITTEN)
    unit = math.gcd(_UNIT, from_out.stride, lay.stride, lay.columns)
    both = _channels(lay, x, exact)
    through = both | _window(grad, pool) | {
        "grad_stride": from_out.stride // unit, "row_stride": lay.stride // unit, "columns": lay.columns // unit,
        "POOL": pool, "ACTIVATION": activation, "UNIT": unit,
    }  # fmt: skip
    programs, adding = _shares(lay, from_out.rows)
    return Launches(
        (programs, triton.cdiv(lay.columns, block["BC"])),
        (triton.cdiv(from_out.rows, written["BR"]), triton.cdiv(lay.columns, written["BC"])),
        adding | block | through, _finishing(lay, x, programs) | both,
        {"rows": from_out.rows} | written | through,
        tuple(out.shape), out.stride(),
    )  # fmt: skip


def _matrix(x: Tensor) -> Matrix:
    found = as_matrix(x)
    assert found is not None
    return found


def space_of(x: Tensor, pool: int = 1) -> tuple[int, ...]:
    """The space of a feature map, pooled."""
    return tuple(n // pool for n in x.shape[3 if x.ndim > 3 else 2 :])


def _window(out: Tensor, pool: int) -> Told:
    high, wide = out.shape[-2:] if pool > 1 else (1, 1)
    return {"high": high, "wide": wide}


def _channels(lay: Matrix, x: Tensor, exact: torch.dtype) -> Told:
    sums = tl.float64 if exact == torch.float64 else tl.float32
    return {"CHANNELS": x.shape[1], "GROUP": lay.group, "EXACT": sums}


def _shares(lay: Matrix, rows: int) -> tuple[int, Told]:
    """How many programs there are, and how many rows each adds up."""
    height = _block(lay)["BR"]
    share = triton.cdiv(triton.cdiv(rows, _PROGRAMS), height) * height
    return triton.cdiv(rows, share), {"rows": rows, "share": share}


def _block(lay: Matrix, most: tuple[int, int] = _READ) -> Told:
    """Rows and columns of a block, of sizes that were fastest on an H200."""
    wide = min(max(triton.next_power_of_2(lay.columns), 16), most[1])
    return {"BR": most[0] // wide, "BC": wide}


def _finishing(lay: Matrix, x: Tensor, programs: int) -> Told:
    own = lay.columns // x.shape[1]  # columns of a channel
    group = triton.next_power_of_2(own)
    sums = {"programs": programs, "columns": lay.columns, "count": x.numel() // x.shape[1]}
    return sums | {"OWN": own, "BP": max(1024 // group, 1), "BG": group}
