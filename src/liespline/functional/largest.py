"""The maximum over H as one operator for torch.compile on a GPU.

Left to itself, the compiler of torch 2.11 leaves gaps between images where it saves the places of maxima. A ResNet with
61 channels then stopped on an H200 with places outside of H, read behind the end of what was saved.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..hopper.operators import innermost

# ---- x (B, C, N, *space) -> values and their places on H, (B, C, *space) each ----


@torch.library.custom_op("liespline::largest", mutates_args=())
def largest(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maxima over H and where they are, of equal ones the first."""
    values, places = x.max(2)
    return values.contiguous(), places.contiguous()


@torch.library.custom_op("liespline::largest_gradient", mutates_args=())
def _gradient(grad: Tensor, places: Tensor, elements: int, together: bool) -> Tensor:
    out = _laid_out(grad, elements, together).zero_()
    out.scatter_(2, places.unsqueeze(2), grad.unsqueeze(2))
    return out


def _laid_out(grad: Tensor, elements: int, together: bool) -> Tensor:
    """Memory for (B, C, N, *space), with all fields of a sample together if they were so in x."""
    b, c, *space = grad.shape
    if together:
        return grad.new_empty(b, *space, elements, c).movedim((-2, -1), (2, 1))
    return grad.new_empty(b, c, elements, *space)


@largest.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    shape = (*x.shape[:2], *x.shape[3:])
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


@_gradient.register_fake
def _(grad: Tensor, places: Tensor, elements: int, together: bool) -> Tensor:
    return _laid_out(grad, elements, together)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    (x,), (_, places) = inputs, output
    ctx.elements, ctx.together = x.shape[2], innermost(x)
    ctx.save_for_backward(places)
    ctx.mark_non_differentiable(places)


def _backward(ctx: Any, grad: Tensor, _: Any) -> Tensor:
    (places,) = ctx.saved_tensors
    return _gradient(grad, places, ctx.elements, ctx.together)


largest.register_autograd(_backward, setup_context=_remember)
