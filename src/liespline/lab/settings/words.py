"""The message about a wrong setting: one sentence that names it, repeats it, and says what would be right."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from .renamed import VALUES

KINDS = {"int": "a whole number", "float": "a number", "string": "text", "bool": "true or false"}
KINDS |= {"tuple": "a list of whole numbers, such as 8,12,16", "dataclass": "'name: value' lines"}


class ConfigError(ValueError):
    """A setting that cannot be used; the message says which, and what would be right."""


def in_words(error: ValidationError, fields: Mapping[str, FieldInfo]) -> str:
    """The first mistake in one sentence: the setting, what it was, and what it may be."""
    first = error.errors()[0]
    place, kind = (first["loc"] or ("",))[0], first["type"]
    name = list(fields)[place] if isinstance(place, int) else place
    if kind == "value_error":
        return str(first["ctx"]["error"])
    if kind == "missing":
        return f"{name!r} is missing"
    if name not in fields:
        return f"{name[:80]!r} is no setting; known are {', '.join(fields)}.{suggestion(name, fields)}"
    if kind == "literal_error":
        return unknown(name, first["input"], choices(fields[name]))
    for start, expected in KINDS.items():
        if kind.startswith(start) and kind.endswith("type"):
            return f"{name} = {shown(first['input'])}: expected {expected}"
    return f"{name} = {shown(first['input'])}: must be {limits(_bounds(fields[name], first['loc']))}"


def choices(field: FieldInfo) -> tuple[str, ...]:
    """The words of a Literal, or of one that may also be None or a name from outside."""
    return tuple(
        word for part in get_args(field.annotation) for word in get_args(part) or (part,) if isinstance(word, str)
    )


def limits(bounds: dict[str, Any]) -> str:
    """Limits in words: `from 1 to 1,000`."""
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    if {"ge", "le"} <= bounds.keys():
        return f"from {bounds['ge']:,} to {bounds['le']:,}"
    if "min_length" in bounds:
        return f"{bounds['min_length']} to {bounds['max_length']} numbers"
    return " and ".join(f"{word} {bounds[key]:,}" for key, word in words.items() if key in bounds) or "a finite number"


def suggestion(value: str, choices: Iterable[str]) -> str:
    """` Did you mean 'so2'?` where a choice is near `value`, else nothing."""
    near = difflib.get_close_matches(value, list(choices), 1, 0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


def unknown(name: str, value: object, choices: Iterable[str]) -> str:
    """The message that a word is not one of the choices: what it is called now, or all of them and the nearest.

    The name is that of a setting, and may say more behind it: `augment (task images)`.
    """
    choices = list(choices)
    now = VALUES.get(name.split()[0], {}).get(value) if isinstance(value, str) else None
    if now is not None and set(now.split("+")) <= {*choices}:
        return f"{name} {shown(value)} is called {now!r} now"
    return f"{name} {shown(value)} is unknown; choose one of {', '.join(choices)}.{suggestion(str(value), choices)}"


def one_of(name: str, value: str, choices: Iterable[str]) -> str:
    """The value itself, or an error with the choices and the near miss."""
    if value not in (known := list(choices)):
        raise ConfigError(unknown(name, value, known))
    return value


def shown(value: object) -> str:
    """A value as it is repeated to the user: short, on one line."""
    try:
        text = str(value) if isinstance(value, Exception) else repr(value)
    except ValueError:  # Python prints no number of over 4,300 digits
        return "a number of thousands of digits"
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:80] + "…"


def _bounds(field: FieldInfo, place: tuple[Any, ...]) -> dict[str, Any]:
    """The limits that a field declares, or those of its items where one of them is wrong."""
    source = field.metadata if len(place) == 1 else next(_inside(field.annotation)).metadata
    keys = ("ge", "gt", "le", "lt", "min_length", "max_length")
    return {key: getattr(limit, key) for limit in source for key in keys if hasattr(limit, key)}


def _inside(kind: Any) -> Iterator[FieldInfo]:
    """The fields of what a type is made of, such as the numbers of a list."""
    for part in get_args(kind):
        yield from [part] if isinstance(part, FieldInfo) else _inside(part)
