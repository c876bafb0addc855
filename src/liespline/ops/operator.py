"""Operators of torch's library, whose kernels are our own: all of them are registered here, in one way."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

from .._torch import DispatchKeySet, OpOverload, has_tangent, unseen, with_gradients

Made = TypeVar("Made")
_library = torch.library.Library("liespline", "DEF")


def operator(
    schema: str,
    compute: Callable[..., Any],
    fake: Callable[..., Any],
    backward: Callable[..., tuple[Tensor | None, ...]] | None = None,
    remember: Callable[..., None] | None = None,
) -> OpOverload:
    """Register an operator: what computes it, what tells shapes alone, and its backward pass.

    `remember` is the `setup_context` of an autograd.Function, `backward` its backward. In forward mode it raises
    NotImplementedError: torch by itself would go on without the tangents, as if they were zero.
    """
    name = schema.partition("(")[0]
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(name, unseen(compute), "CompositeExplicitAutograd")
    torch.library.register_fake(f"liespline::{name}", fake, lib=_library)
    found: OpOverload = getattr(torch.ops.liespline, name).default
    differentiated = with_gradients(found, backward, remember)

    def differentiate(keys: DispatchKeySet, *args: Any) -> Any:
        if any(has_tangent(value) for value in args):
            raise NotImplementedError(
                f"liespline::{name} has no forward-mode derivative: call the layer, which computes such a one by "
                "torch's own operators"
            )
        return differentiated(keys, *args)

    _library.impl(name, differentiate, "Autograd", with_keyset=True)
    return found


def on_its_device(launch: Callable[..., Made]) -> Callable[..., Made]:
    """Launch kernels on the GPU of the first argument, also where another one is the current device."""

    @wraps(launch)
    def call(x: Tensor, *args: Any, **options: Any) -> Made:
        with torch.cuda.device_of(x):
            return launch(x, *args, **options)

    return call


@cache
def capability(device: torch.device) -> tuple[int, int]:
    """Return the compute capability of a GPU; (0, 0) where none is, so that kernels are not for its fake tensors."""
    return torch.cuda.get_device_capability(device) if torch.cuda.is_available() else (0, 0)
