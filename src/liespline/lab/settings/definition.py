"""What makes a class of settings: fields with their words and limits, checked by pydantic."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, TypeVar, dataclass_transform, get_args

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic.fields import FieldInfo

from .words import ConfigError, choices, in_words

T = TypeVar("T")


def setting(
    default: Any,
    about: str,
    *,
    special: bool = False,
    machine: bool = False,
    later: bool = False,
    metavar: str | None = None,
    **limits: Any,
) -> Any:
    """A field: its default, the words of `--help`, and limits as pydantic names them (ge, lt, min_length, …).

    A `special` one is for those tasks alone that name it among their options. A setting of the `machine` changes how
    fast numbers come, not which ones; these, and those marked `later`, may change when a run is resumed.
    """
    extra: Any = {"special": special, "machine": machine, "later": later or machine, "metavar": metavar}
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


@dataclass(frozen=True)
class Setting:
    """What is known of one setting, for options, tables and refusals."""

    name: str
    part: str
    """`network`, `training`, or nothing for what stands at the top of the file."""
    about: str
    default: Any
    kind: type
    """The type of its values, None apart."""
    choices: tuple[str, ...]
    special: bool
    machine: bool
    later: bool
    metavar: str | None

    @staticmethod
    def of(name: str, part: str, field: FieldInfo) -> Setting:
        """Read it off the field."""
        words = choices(field)
        kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)]
        kinds = [field.annotation, *kinds] if len(kinds) < 2 else [str]
        kind: Any = next((k for k in kinds if k in (int, float, bool)), str)
        extra: Any = field.json_schema_extra
        return Setting(name, part, str(field.description), field.default, kind, words, **extra)

    @property
    def option(self) -> str:
        """Its name on the command line."""
        return "--" + self.name.replace("_", "-")
