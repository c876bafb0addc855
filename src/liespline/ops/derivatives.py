"""Derivatives of operators whose backward pass is our own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import Function

from .._torch import batched, transformed

Kind = TypeVar("Kind", bound=type[Function])


def quick(function: Kind) -> Kind:
    """Keep the signature of `forward`, which torch finds anew in every call: 50 µs of one core."""
    forward: Any = function.forward
    forward.__signature__ = inspect.signature(forward)
    return function


def followed() -> bool:
    """Say whether a gradient will itself be differentiated or is computed for many at once: not by our own kernels."""
    return torch.is_grad_enabled() or transformed() or batched()


def again(
    formula: Callable[..., Tensor], tensors: Sequence[Tensor | None], needs: Sequence[bool], grad: Tensor
) -> list[Tensor | None]:
    """Return the gradients of a formula in torch's own operators, which every transform knows."""
    wanted = [tensor for tensor, need in zip(tensors, needs, strict=True) if need and tensor is not None]

    def of_wanted(*given: Tensor) -> Tensor:
        some = iter(given)
        return formula(*(next(some) if need else tensor for tensor, need in zip(tensors, needs, strict=True)))

    if transformed():
        found = iter(torch.func.vjp(of_wanted, *wanted)[1](grad))
    else:  # not by vjp, which refuses hooks on saved tensors
        further = torch.is_grad_enabled()
        with torch.enable_grad():
            out = formula(*tensors)
        found = iter(torch.autograd.grad(out, wanted, grad, create_graph=further))
    return [next(found) if need else None for need in needs]
