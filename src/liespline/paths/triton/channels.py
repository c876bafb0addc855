"""Sums and linear maps a channel of `(B, C, N_h, *space)`, in whichever layout a path left it: for batch norm.

Either layout of the paths is a matrix whose columns lie next to each other in memory and belong to channels in a
pattern that repeats: C innermost, or C·N_h with N_h innermost and perhaps a gap after each row.
"""

from itertools import pairwise
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from liespline.paths.triton import channel_kernels

_ROWS, _COLUMNS = 32, 128  # of a block
_PROGRAMS = 2048


class Matrix(NamedTuple):
    """A feature map as rows × columns, column j of channel (j // group) % C."""

    rows: int
    columns: int
    stride: int  # from row to row
    group: int


def as_matrix(x: Tensor) -> Matrix | None:
    """How `x` lies in memory, None for any other layout; no number is moved."""
    channels, sizes, strides = x.shape[1], list(x.shape), list(x.stride())
    if strides[1] == 1:
        inner, group = {1}, 1
    elif x.ndim > 3 and strides[2] == 1 and strides[1] == sizes[2]:
        inner, group = {1, 2}, sizes[2]
    else:
        return None
    outer = sorted((strides[i], sizes[i]) for i in range(x.ndim) if i not in inner and sizes[i] > 1)
    for (small, size), (large, _) in pairwise(outer):
        if large != small * size:
            return None
    columns = channels * group
    stride = outer[0][0] if outer else columns
    return Matrix(x.numel() // columns, columns, stride, group) if stride >= columns else None


@torch.library.custom_op("liespline::channel_sums", mutates_args=())
def sums(u: Tensor, v: Tensor, shift_u: Tensor, shift_v: Tensor) -> Tensor:
    """Σ (u − shift_u) and Σ (u − shift_u)(v − shift_v) a channel: u, v (B, C, …), shifts (C,) -> (2, C)."""
    exact = shift_u.dtype
    pair = _alike(u, v)
    if pair is None:
        shape = (1, -1, *(1,) * (u.ndim - 2))
        left, right = u.to(exact) - shift_u.view(shape), v.to(exact) - shift_v.view(shape)
        axes = [0, *range(2, u.ndim)]
        return torch.stack([left.sum(axes), (left * right).sum(axes)])
    one, other = pair
    share = max(triton.cdiv(one.rows, _PROGRAMS), 1)
    share = triton.cdiv(share, _ROWS) * _ROWS
    programs = triton.cdiv(one.rows, share)
    partial = torch.empty(programs, 2, one.columns, device=u.device, dtype=exact)
    channel_kernels.sums[(programs, triton.cdiv(one.columns, _COLUMNS))](
        u, v, shift_u.contiguous(), shift_v.contiguous(), partial,
        one.rows, share, one.stride, other.stride, one.columns,
        CHANNELS=u.shape[1], GROUP=one.group, BR=_ROWS, BC=_COLUMNS, SUMS=_exact(exact),
    )  # fmt: skip
    return partial.sum(0).view(2, -1, u.shape[1], one.group).sum((1, 3))


@sums.register_fake
def _(u: Tensor, v: Tensor, shift_u: Tensor, shift_v: Tensor) -> Tensor:
    return shift_u.new_empty(2, len(shift_u))


def blend(u: Tensor, v: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """a·u + b·v + c, computed in the precision of the factors (C,): u, v (B, C, …), in the layout of u.

    Under `torch.compile` it is left to fuse with what comes before and after.
    """
    pair = None if torch.compiler.is_compiling() else _alike(u, v)
    if pair is None:
        shape = (1, -1, *(1,) * (u.ndim - 2))
        return (a.view(shape) * u + b.view(shape) * v + c.view(shape)).to(u.dtype)
    one, other = pair
    out = torch.empty_like(u)  # the same order of axes, without gaps
    channel_kernels.blend[(triton.cdiv(one.rows, _ROWS), triton.cdiv(one.columns, _COLUMNS))](
        u, v, a.contiguous(), b.contiguous(), c.contiguous(), out, one.rows, one.stride, other.stride, one.columns,
        CHANNELS=u.shape[1], GROUP=one.group, BR=_ROWS, BC=_COLUMNS, SUMS=_exact(a.dtype),
    )  # fmt: skip
    return out


def _alike(u: Tensor, v: Tensor) -> tuple[Matrix, Matrix] | None:
    """Both as matrices of one shape, short rows without gaps taken together; None where they are not alike."""
    one, other = as_matrix(u), as_matrix(v)
    if one is None or other is None or one.group != other.group:
        return None
    while one.stride == other.stride == one.columns < _COLUMNS and one.rows % 2 == 0:
        one = other = Matrix(one.rows // 2, 2 * one.columns, 2 * one.stride, one.group)
    return one, other


def _exact(dtype: torch.dtype) -> tl.dtype:
    return tl.float64 if dtype == torch.float64 else tl.float32
