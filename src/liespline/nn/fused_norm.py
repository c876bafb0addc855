"""Batch norm, ReLU and max pooling of `(B, C, N_h, *space)` as one operator of torch, in the layouts paths leave.

Each layout is a matrix whose columns lie next to each other in memory: C innermost, N_h·C with C innermost, or C·N_h
with N_h innermost, and perhaps a gap after each row. Any other is copied into the last one first.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn import functional as F

from ..derivatives import again
from ..hopper.operators import innermost
from . import norm_kernels as kernels

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
    return (2, 1) if innermost(x) else (1,) if x.stride(1) == 1 or x.ndim < 4 else (1, 2)


def ordered(x: Tensor) -> Tensor:
    """The feature map itself if it is a matrix, else its copy with channels and elements innermost."""
    if as_matrix(x) is not None:
        return x
    inner = (2, 1) if innermost(x) else (1, 2) if x.ndim > 3 else (1,)
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


def normalise(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int
) -> tuple[Tensor, Tensor]:
    """pool(relu(batch norm(x))) and (5, C) facts: mean, variance, 1/√(variance + eps), scale, shift."""
    if torch.compiler.is_compiling():
        return operator(x, weight, bias, eps, relu, pool)
    found: tuple[Tensor, Tensor] = _Normalise.apply(x, weight, bias, eps, relu, pool)
    return found


def _forward(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int
) -> tuple[Tensor, Tensor]:
    x = ordered(x)
    lay = _matrix(x)
    exact = _exact(x)
    facts = torch.empty(5, x.shape[1], device=x.device, dtype=exact)
    partial, share = _partial(lay, lay.rows, exact, x.device)
    block = _block(lay)
    grid = (len(partial), triton.cdiv(lay.columns, block["BC"]))
    common: dict[str, Any] = {"CHANNELS": x.shape[1], "GROUP": lay.group, "EXACT": _tl(exact)}
    unit = math.gcd(_UNIT, lay.stride, lay.columns)
    sizes = lay.stride // unit, lay.columns // unit
    kernels.moments[grid](x, partial, lay.rows, share, *sizes, UNIT=unit, **block, **common)
    kernels.finish_moments[(x.shape[1],)](
        partial, x, weight, bias, facts, len(partial), lay.columns, x.numel() // x.shape[1], eps,
        AFFINE=weight is not None, **_small(lay, x), **common,
    )  # fmt: skip
    out = empty(x, _space(x, pool))
    high, wide = _window(out, pool)
    rows = lay.rows // pool**2
    kernels.apply[(triton.cdiv(rows, block["BR"]), grid[1])](
        x, facts, out, rows, *sizes, high, wide,
        POOL=pool, RELU=relu, UNIT=unit, **block, **common,
    )  # fmt: skip
    return out, facts


def _backward(grad: Tensor, x: Tensor, facts: Tensor, relu: bool, pool: int) -> tuple[Tensor, Tensor]:
    """The gradient of x, and (4, C) terms of which the first two are those of weight and bias."""
    x = ordered(x)
    lay, exact = _matrix(x), facts.dtype
    from_out = as_matrix(grad)
    if from_out is None or (from_out.group, from_out.columns) != (lay.group, lay.columns):
        grad = empty(x, _space(grad)).copy_(grad)
        from_out = _matrix(grad)
    terms = torch.empty(4, x.shape[1], device=x.device, dtype=exact)
    partial, share = _partial(lay, from_out.rows, exact, x.device)
    block, written = _block(lay), _block(lay, _WRITTEN)
    high, wide = _window(grad, pool)
    common: dict[str, Any] = {"CHANNELS": x.shape[1], "GROUP": lay.group, "EXACT": _tl(exact)}
    unit = math.gcd(_UNIT, from_out.stride, lay.stride, lay.columns)
    sizes = from_out.stride // unit, lay.stride // unit, lay.columns // unit
    through: dict[str, Any] = {"POOL": pool, "RELU": relu, "UNIT": unit} | common
    kernels.gradient_sums[(len(partial), triton.cdiv(lay.columns, block["BC"]))](
        grad, x, facts, partial, from_out.rows, share, *sizes, high, wide, **block, **through
    )
    kernels.finish_gradient[(x.shape[1],)](
        partial, facts, terms, len(partial), lay.columns, x.numel() // x.shape[1], **_small(lay, x), **common
    )
    out = empty(x, _space(x))
    kernels.gradient[(triton.cdiv(from_out.rows, written["BR"]), triton.cdiv(lay.columns, written["BC"]))](
        grad, x, facts, terms, out, from_out.rows, *sizes, high, wide, **written, **through
    )
    return out, terms


def _plain(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int) -> Tensor:
    """The same by torch's own operators."""
    out = F.batch_norm(x, None, None, weight, bias, training=True, eps=eps)
    out = F.relu(out) if relu else out
    return out if pool == 1 else F.max_pool2d(out.flatten(0, 2), pool).unflatten(0, out.shape[:3])


class _Normalise(torch.autograd.Function):
    """Eagerly, where an operator of torch's library takes longer to call than the kernels to launch."""

    @staticmethod
    def forward(
        x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int
    ) -> tuple[Tensor, Tensor]:
        return _forward(x, weight, bias, eps, relu, pool)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _remember(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return _send_back(ctx, grad, _backward)


@torch.library.custom_op("liespline::normalise", mutates_args=())
def operator(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int
) -> tuple[Tensor, Tensor]:
    """The same for torch.compile, which looks into nothing that launches kernels itself."""
    return _forward(x, weight, bias, eps, relu, pool)


@torch.library.custom_op("liespline::normalise_backward", mutates_args=())
def operator_backward(grad: Tensor, x: Tensor, facts: Tensor, relu: bool, pool: int) -> tuple[Tensor, Tensor]:
    """Its gradients."""
    return _backward(grad, x, facts, relu, pool)


@operator.register_fake
def _(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float, relu: bool, pool: int
) -> tuple[Tensor, Tensor]:
    return empty(ordered(x), _space(x, pool)), x.new_empty(5, x.shape[1], dtype=_exact(x))


@operator_backward.register_fake
def _(grad: Tensor, x: Tensor, facts: Tensor, relu: bool, pool: int) -> tuple[Tensor, Tensor]:
    x = ordered(x)
    return empty(x, _space(x)), facts.new_empty(4, x.shape[1])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, weight, bias, ctx.eps, ctx.relu, ctx.pool = inputs
    ctx.save_for_backward(x, weight, bias, output[1])
    ctx.mark_non_differentiable(output[1])


def _send_back(ctx: Any, grad: Tensor, gradients: Callable[..., tuple[Tensor, Tensor]]) -> tuple[Tensor | None, ...]:
    x, weight, bias, facts = ctx.saved_tensors
    if torch.is_grad_enabled():  # the gradient itself will be differentiated
        out = _plain(x, weight, bias, ctx.eps, ctx.relu, ctx.pool)
        return *again(out, (x, weight, bias), ctx.needs_input_grad[:3], grad), None, None, None
    dx, terms = gradients(grad, x, facts, ctx.relu, ctx.pool)
    return dx, None if weight is None else terms[0], None if bias is None else terms[1], None, None, None


operator.register_autograd(lambda ctx, grad, _: _send_back(ctx, grad, operator_backward), setup_context=_remember)


def _matrix(x: Tensor) -> Matrix:
    found = as_matrix(x)
    assert found is not None
    return found


def _space(x: Tensor, pool: int = 1) -> tuple[int, ...]:
    return tuple(n // pool for n in x.shape[3 if x.ndim > 3 else 2 :])


def _window(out: Tensor, pool: int) -> tuple[int, int]:
    return (out.shape[-2], out.shape[-1]) if pool > 1 else (1, 1)


def _exact(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _tl(dtype: torch.dtype) -> tl.dtype:
    return tl.float64 if dtype == torch.float64 else tl.float32


def _partial(lay: Matrix, rows: int, exact: torch.dtype, device: torch.device) -> tuple[Tensor, int]:
    """Memory for the sums of each program, and how many rows one takes."""
    height = _block(lay)["BR"]
    share = triton.cdiv(triton.cdiv(rows, _PROGRAMS), height) * height
    return torch.empty(triton.cdiv(rows, share), 2, lay.columns, device=device, dtype=exact), share


def _block(lay: Matrix, most: tuple[int, int] = _READ) -> dict[str, int]:
    """Rows and columns of a block, of sizes that were fastest on an H200."""
    wide = min(max(triton.next_power_of_2(lay.columns), 16), most[1])
    return {"BR": most[0] // wide, "BC": wide}


def _small(lay: Matrix, x: Tensor) -> dict[str, int]:
    group = triton.next_power_of_2(own := lay.columns // x.shape[1])  # columns of a channel
    return {"OWN": own, "BP": max(1024 // group, 1), "BG": group}
