"""What the methods of a group may be given, checked in one place for every group, a user's own included."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

from .._torch import readable

if TYPE_CHECKING:
    from .base import Group

METHODS = {"product": "gh", "inverse": "h", "exp": "a", "log": "h", "act": "hx"}
"""The arguments of the five methods: g and h are elements, a is an algebra vector, x a point."""


def checked(method: Callable[..., Tensor], arguments: str) -> Callable[..., Tensor]:
    """Return the method with a check of its arguments before it."""

    @functools.wraps(method)
    def call(self: Group, *args: Tensor, **kwargs: Tensor) -> Tensor:
        for name, value in (*zip(arguments, args, strict=False), *kwargs.items()):
            _check(self, method.__name__, name, value)
        return method(self, *args, **kwargs)

    return call


def _check(group: Group, method: str, name: str, value: Tensor) -> None:
    kind, shape = {
        "a": ("algebra vectors", (group.dim,)),
        "x": ("points", (group.space_dim,)),
    }.get(name, ("elements", group.element_shape))
    where = f"{type(group).__name__}.{method}"
    if not isinstance(value, Tensor) or not value.is_floating_point():
        found = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise ValueError(f"{where}: {name} must be a floating-point tensor, not {found}")
    if value.shape[max(value.ndim - len(shape), 0) :] != shape:
        raise ValueError(
            f"{where}: {name} has shape {tuple(value.shape)}; {kind} have shape (*batch, "
            + ", ".join(map(str, shape))
            + ")"
        )
    if kind == "elements" and readable(value):
        group.require(f"{where}: {name}", value.detach())
