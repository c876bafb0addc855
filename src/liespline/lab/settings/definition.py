"""What makes a class of settings: fields with their words, marks and limits, checked by pydantic."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, dataclass_transform, get_args, get_origin

import yaml
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic.fields import FieldInfo

from .words import ConfigError, choices, in_words

T = TypeVar("T")
SPECIAL = "special"
"""For those tasks alone that name it among their options."""
ADVANCED = "advanced"
"""No option of the command line, but set by `--set NAME=VALUE` or in a file."""
LATER = "later"
"""May change when a run is resumed: how long it trains, and where it computes."""


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
