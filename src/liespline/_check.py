"""Numbers that users give: whole ones, one for each axis of space, one for each axis of an algebra."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

Size = tuple[int, ...]
"""One whole number for each space axis."""


def whole(where: str, name: str, value: object, least: int = 1) -> int:
    """Return a whole number, or say that it has to be one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{where}: {name} = {value!r}, must be a whole number ≥ {least}")
    return value


def sizes(where: str, name: str, value: int | Sequence[int], dims: int, least: int = 1) -> Size:
    """Return one whole number for each of `dims` axes; a single number stands for all of them."""
    found = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,) * dims
    if len(found) != dims:
        raise ValueError(
            f"{where}: {name} = {value!r} has {len(found)} numbers, must have {dims}: "
            f"give a whole number ≥ {least}, or {dims} of them"
        )
    return tuple(whole(where, name, v, least) for v in found)


def per_axis(where: str, name: str, value: T | tuple[T, ...], dim: int) -> tuple[T, ...]:
    """Return one value for each axis of the algebra; a single one stands for all of them."""
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,) * dim
    if len(values) != dim:
        raise ValueError(
            f"{where}: {name} = {value} has {len(values)} entries, must have {dim}, one per axis of the algebra"
        )
    return values
