"""What makes a class of settings: fields with their limits, checked by pydantic; and a sentence about a wrong one."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin

import yaml
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic.fields import FieldInfo

from .renamed import VALUES

KINDS = {"int": "a whole number", "float": "a number", "string": "text", "bool": "true or false"}
KINDS |= {"tuple": "a list of whole numbers, such as 8,12,16", "dataclass": "'name: value' lines"}
T = TypeVar("T")
SPECIAL = "special"
"""For those tasks alone that name it among their options."""
ADVANCED = "advanced"
"""No option of the command line, but set by `--set NAME=VALUE` or in a file."""
LATER = "later"
"""May change when a run is resumed: how long it trains, and where it computes."""


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
    """The words of a Literal, or of one that may be None."""
    found = tuple(word for part in get_args(field.annotation) for word in get_args(part) or (part,))
    words = tuple(word for word in found if word is not type(None))
    return words if all(isinstance(word, str) for word in words) else ()


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
    source = field.metadata if len(place) == 1 else _declared(field.annotation)
    keys = ("ge", "gt", "le", "lt", "min_length", "max_length")
    return {key: getattr(limit, key) for limit in source for key in keys if hasattr(limit, key)}


def _declared(kind: Any) -> list[Any]:
    """The limits that stand anywhere in an annotation."""
    own = [limit for field in getattr(kind, "__metadata__", ()) for limit in getattr(field, "metadata", ())]
    return own + [limit for part in get_args(kind) for limit in _declared(part)]


def setting(default: Any, about: str, *marks: str, metavar: str | None = None, **limits: Any) -> Any:
    """A field: its default, the words of `--help`, its marks, and limits as pydantic names them (ge, lt, …)."""
    extra: Any = {"marks": marks, "metavar": metavar}
    return Field(default, description=about, json_schema_extra=extra, **limits)


@dataclass_transform(frozen_default=True)
def checked_settings(cls: type[T]) -> type[T]:
    """A frozen dataclass whose values are checked when it is made or replaced; mistakes are ConfigErrors."""
    made: Any = checked_dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))(cls)
    init = made.__init__

    @functools.wraps(init)
    def checked(self: Any, /, *args: Any, **values: Any) -> None:
        try:
            init(self, *args, **values)
        except ValidationError as error:
            raise ConfigError(in_words(error, made.__pydantic_fields__)) from None

    made.__init__ = checked
    return made


def _bare(kind: Any) -> Any:
    """A type without its limits and without the None beside it; a union of others stays one."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    others = [other for other in get_args(kind) if other is not type(None)]
    return _bare(others[0]) if get_origin(kind) in (Union, UnionType) and len(others) == 1 else kind


@dataclass(frozen=True)
class Setting:
    """What is known of one setting, for options, tables and refusals."""

    name: str
    part: str
    """`network`, `training`, or nothing for what stands at the top of the file."""
    about: str
    default: Any
    kind: type
    """The type of its values, None apart; str for those that a reader of their own makes of text."""
    choices: tuple[str, ...]
    metavar: str | None
    special: bool
    advanced: bool
    later: bool

    @staticmethod
    def of(name: str, part: str, field: FieldInfo) -> Setting:
        """Read it off the field."""
        extra: Any = field.json_schema_extra
        marks, kind = extra["marks"], _bare(field.annotation)
        return Setting(
            name, part, str(field.description), field.default, kind if kind in (int, float, bool) else str,
            choices(field), extra["metavar"], SPECIAL in marks, ADVANCED in marks, LATER in marks,
        )  # fmt: skip

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return f"--set {self.name}=…" if self.advanced else "--" + self.name.replace("_", "-")

    def read(self, text: str | bool) -> Any:
        """The value that a text stands for, as in YAML: `--set stride=2`; what is none is left as text."""
        if self.kind is str or isinstance(text, bool):
            return text
        try:
            found = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError):
            return text
        return float(found) if self.kind is float and type(found) is int else found
