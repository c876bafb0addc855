"""Derivatives of operators whose backward pass is our own."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function

Kind = TypeVar("Kind", bound=type[Function])


def quick(function: Kind) -> Kind:
    """Keep the signature of `forward`, which torch finds anew in every call: 50 µs of one core."""
    forward: Any = function.forward
    forward.__signature__ = inspect.signature(forward)
    return function


def traced(x: Tensor) -> bool:
    """Say whether a compiler or a tracer follows x, to which each kernel must be an operator of torch's library."""
    return torch.compiler.is_compiling() or type(x) not in (Tensor, torch.nn.Parameter)


def again(out: Tensor, tensors: Sequence[Tensor], needs: Sequence[bool], grad: Tensor) -> list[Tensor | None]:
    """Return the gradients of what torch's own operators computed; these can be differentiated again."""
    wanted = [tensor for tensor, need in zip(tensors, needs, strict=True) if need]
    found = iter(torch.autograd.grad(out, wanted, grad, create_graph=True))
    return [next(found) if need else None for need in needs]
