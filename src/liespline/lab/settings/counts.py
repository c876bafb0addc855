"""How many elements of a group: one number, or for products one per factor, written 8x4."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationInfo

from .words import ConfigError, shown

MOST = 1000
_WRITTEN = re.compile(r"\d{1,9}(x\d{1,9})*")


def _read(value: object, info: ValidationInfo) -> object:
    """`8` and `8x4` of the command line and of YAML, and lists of JSON, which knows no tuples."""
    value = tuple(value) if isinstance(value, list) else value
    if isinstance(value, str):
        if not _WRITTEN.fullmatch(value):
            raise ConfigError(f"{info.field_name} = {shown(value)}: expected a whole number, or for products 8x4")
        numbers = tuple(int(part) for part in value.split("x"))
        value = numbers[0] if len(numbers) == 1 else numbers
    if isinstance(value, tuple) and not (
        len(value) > 1 and all(isinstance(n, int) and n >= 1 for n in value) and math.prod(value) <= MOST
    ):
        raise ConfigError(
            f"{info.field_name} = {shown(value)}: must be from 1 to {MOST:,} elements in all, such as 8x4"
        )
    return value


Counts = Annotated[Annotated[int, Field(ge=1, le=MOST)] | tuple[int, ...], BeforeValidator(_read)]
"""A whole number, or a tuple with one number per factor."""


def total(counts: int | tuple[int, ...]) -> int:
    """The product of all factors."""
    return counts if isinstance(counts, int) else math.prod(counts)


def written(counts: int | tuple[int, ...]) -> str:
    """As on the command line: `8`, `8x4`."""
    return str(counts) if isinstance(counts, int) else "x".join(map(str, counts))
