"""Kinds of values: how the command line and YAML write them, and one of several numbers, such as 8x4, in general."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from .words import ConfigError, shown

MOST_ELEMENTS = 1000
MOST_SIDE = 8192


def _number(value: object) -> object:
    """YAML reads 1e-3 as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _numbers(value: object, info: ValidationInfo) -> object:
    """`8` and `8x4` of the command line and of YAML, and lists of JSON, which knows no tuples."""
    if isinstance(value, str):
        if not re.fullmatch(r"\d{1,9}(x\d{1,9})*", value):
            such_as = "products 8x4" if info.field_name in ("elements", "basis") else "volumes 64x64x32"
            raise ConfigError(f"{info.field_name} = {shown(value)}: expected a whole number, or for {such_as}")
        value = [int(part) for part in value.split("x")]
    if isinstance(value, list):
        return value[0] if len(value) == 1 else tuple(value)
    return value


def _counts(value: object, info: ValidationInfo) -> object:
    value = _numbers(value, info)
    if isinstance(value, tuple) and not (
        value and all(isinstance(n, int) and n >= 1 for n in value) and math.prod(value) <= MOST_ELEMENTS
    ):
        raise ConfigError(
            f"{info.field_name} = {shown(value)}: must be from 1 to {MOST_ELEMENTS:,} elements in all, such as 8x4"
        )
    return value


def _size(value: object, info: ValidationInfo) -> object:
    value = _numbers(value, info)
    sides = value if isinstance(value, tuple) else (value,)
    if len(sides) not in (1, 3) or any(isinstance(n, int) and not 1 <= n <= MOST_SIDE for n in sides):
        raise ConfigError(f"size = {shown(value)}: must be from 1 to {MOST_SIDE:,}, or three of them for volumes")
    return value


def _interval(value: object) -> object:
    """`-160,240` of the command line, and lists of YAML, as a pair."""
    if isinstance(value, str):
        if value.count(",") != 1:
            raise ConfigError(f"intensity_range = {shown(value)}: expected LOW,HIGH, such as -160,240")
        value = value.split(",")
    return tuple(map(_number, value)) if isinstance(value, list) else value


def _widths(value: object) -> object:
    """`8,12,16` of the command line, and lists of YAML, as a tuple."""
    if isinstance(value, str) and all(part.strip().isdigit() for part in value.split(",")):
        return tuple(int(part[:20]) for part in value.split(","))
    return tuple(value) if isinstance(value, list) else value


Number = Annotated[float, BeforeValidator(_number)]
Counts = Annotated[Annotated[int, Field(ge=1, le=MOST_ELEMENTS)] | tuple[int, ...], BeforeValidator(_counts)]
"""How many elements of a group: a whole number, or of a product one per factor."""
Size = Annotated[int | tuple[int, int, int] | None, BeforeValidator(_size)]
"""One side, or three of a volume."""
Interval = Annotated[tuple[float, float] | None, BeforeValidator(_interval)]
Widths = Annotated[tuple[Annotated[int, Field(ge=1, le=8192)], ...], BeforeValidator(_widths)]


def total(counts: int | tuple[int, ...]) -> int:
    """The product of all factors."""
    return counts if isinstance(counts, int) else math.prod(counts)


def written(counts: int | tuple[int, ...]) -> str:
    """As on the command line: `8`, `8x4`."""
    return str(counts) if isinstance(counts, int) else "x".join(map(str, counts))
