"""Kinds of values that the command line and YAML write in their own ways."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from .words import ConfigError, shown

MOST_SIDE = 8192


def _number(value: object) -> object:
    """YAML reads 1e-3 as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _numbers(value: object) -> object:
    """`8,12,16` of the command line, and lists of YAML, as a tuple."""
    if isinstance(value, str) and all(part.strip().isdigit() for part in value.split(",")):
        return tuple(int(part[:20]) for part in value.split(","))
    return tuple(value) if isinstance(value, list) else value


def _interval(value: object) -> object:
    """`-160,240` of the command line, and lists of YAML, as a pair."""
    if isinstance(value, str):
        if value.count(",") != 1:
            raise ConfigError(f"intensity_range = {shown(value)}: expected LOW,HIGH, such as -160,240")
        value = value.split(",")
    return tuple(map(_number, value)) if isinstance(value, list) else value


def _size(value: object) -> object:
    """`64` and `64x64x32` of the command line and of YAML, and lists of JSON."""
    value = tuple(value) if isinstance(value, list) else value
    if isinstance(value, str):
        if not re.fullmatch(r"\d{1,9}(x\d{1,9}){0,2}", value):
            raise ConfigError(f"size = {shown(value)}: expected a whole number, or for volumes 64x64x32")
        numbers = tuple(int(part) for part in value.split("x"))
        value = numbers[0] if len(numbers) == 1 else numbers
    sides = value if isinstance(value, tuple) else (value,)
    if len(sides) not in (1, 3) or any(isinstance(n, int) and not 1 <= n <= MOST_SIDE for n in sides):
        raise ConfigError(f"size = {shown(value)}: must be from 1 to {MOST_SIDE:,}, or three of them for volumes")
    return value


Number = Annotated[float, BeforeValidator(_number)]
Size = Annotated[int | tuple[int, int, int] | None, BeforeValidator(_size)]
"""One side, or three of a volume."""
Interval = Annotated[tuple[float, float] | None, BeforeValidator(_interval)]
Widths = Annotated[tuple[Annotated[int, Field(ge=1, le=8192)], ...], BeforeValidator(_numbers)]
