"""Kinds of values that the command line and YAML write in their own ways."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field


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
    if isinstance(value, str) and value.count(",") == 1:
        value = value.split(",")
    return tuple(map(_number, value)) if isinstance(value, list) else value


Number = Annotated[float, BeforeValidator(_number)]
Interval = Annotated[tuple[float, float] | None, BeforeValidator(_interval)]
Widths = Annotated[tuple[Annotated[int, Field(ge=1, le=8192)], ...], BeforeValidator(_numbers)]
