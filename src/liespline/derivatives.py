"""Derivatives of operators whose backward pass is our own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def again(out: Tensor, tensors: Sequence[Tensor], needs: Sequence[bool], grad: Tensor) -> list[Tensor | None]:
    """Return the gradients of what torch's own operators computed; these can be differentiated again."""
    wanted = [tensor for tensor, need in zip(tensors, needs, strict=True) if need]
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return [next(found) if need else None for need in needs]
