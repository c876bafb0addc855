"""Derivatives of operators whose backward pass is our own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad


def again(out: Tensor, tensors: Sequence[Tensor], needs: Sequence[bool], grad: Tensor) -> list[Tensor | None]:
    """Return the gradients of what torch's own operators computed, which can be differentiated in their turn."""
    wanted = [tensor for tensor, need in zip(tensors, needs, strict=True) if need]
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return [next(found) if need else None for need in needs]


def transformed() -> bool:
    """Say whether torch.func (vmap, jvp, grad …) or forward mode is at work, which only torch's operators know."""
    return torch._C._functorch.peek_interpreter_stack() is not None or forward_ad._current_level >= 0
