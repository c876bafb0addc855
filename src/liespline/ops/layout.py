"""In which order a feature map `(B, C, N_h, *space)` lies in memory: read once where it comes in, then a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from torch import Tensor

Ints = Sequence[int]


class Order(Enum):
    """What lies together: the samples of a field, the channels of an element, or all fields of a sample."""

    PLANES = "planes"  # (B, C, N_h, *space), or anything else
    CHANNELS = "channels"  # (B, N_h, *space, C)
    FIELDS = "fields"  # (B, *space, N_h, C)


def order_of(x: Tensor) -> Order:
    """Return the order of `(B, C, N_h, *space)`."""
    if x.ndim < 4 or x.shape[2] == 1 or x.stride(1) != 1:
        return Order.PLANES
    return Order.FIELDS if x.stride(2) == x.shape[1] else Order.CHANNELS


def fields_last(x: Tensor) -> Tensor:
    """(B, C, N_h, *space) -> (B, *space, N_h, C), a view."""
    return x.movedim((2, 1), (-2, -1))


def fields_first(x: Tensor) -> Tensor:
    """(B, *space, N_h, C) -> (B, C, N_h, *space), a view."""
    return x.movedim((-2, -1), (2, 1))


def over_space(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a map of images `(B, fields, *space)` to each field of `(B, C, N_h, *space)`, and copy none for it."""
    match order_of(x):
        case Order.FIELDS:
            swapped = x.transpose(1, 2)
            return function(swapped.flatten(1, 2)).unflatten(1, swapped.shape[1:3]).transpose(1, 2)
        case Order.CHANNELS:  # elements as images of their own
            swapped = x.transpose(1, 2)
            return function(swapped.flatten(0, 1)).unflatten(0, swapped.shape[:2]).transpose(1, 2)
        case _:
            return function(x.flatten(1, 2)).unflatten(1, x.shape[1:3])


def by_axis(name: str, values: Ints, axes: str = "dhw") -> dict[str, int]:
    """Name a number for each axis, as kernels are told them: by_axis("pad", (0, 1, 2)) is pad_d, pad_h and pad_w."""
    return {f"{name}_{axis}": value for axis, value in zip(axes, values, strict=True)}


def output_size(
    space: Sequence[int], window: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> list[int]:
    """Return the space of what a correlation leaves."""
    return [(n + 2 * p - k) // s + 1 for n, k, s, p in zip(space, window, stride, padding, strict=True)]
