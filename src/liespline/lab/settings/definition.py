"""What makes a class of settings: fields with their marks, limits and kinds of values, checked by pydantic."""

import functools
import math
import re
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Self, TypeVar, Union, dataclass_transform, get_args, get_origin

import yaml
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic.fields import FieldInfo

from .words import ConfigError, choices, in_words, shown

T = TypeVar("T")
SPECIAL = "special"
"""For those tasks alone that name it among their options."""
ADVANCED = "advanced"
"""No option of the command line, but set by `--set NAME=VALUE` or in a file."""
LATER = "later"
"""May change when a run is resumed: how long it trains, and where it computes."""
MOST_ELEMENTS = 1000
MOST_SIDES = {"size": 8192, "kernel_size": 101}
SUBGROUPS = ("so2", "o2", "so3", "axial", "scale", "none")
"""What a network may be restricted to: those elements of its group that are in this one."""
_STAGES = r"\d{1,3}=(GROUP)(,\d{1,3}=(GROUP))*".replace("GROUP", "|".join(SUBGROUPS))


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

    @classmethod
    def of(cls, name: str, part: str, field: FieldInfo) -> Self:
        """Read it off the field."""
        extra: Any = field.json_schema_extra
        marks, kind = extra["marks"], _bare(field.annotation)
        return cls(
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
    value, most = _numbers(value, info), MOST_SIDES[str(info.field_name)]
    sides = value if isinstance(value, tuple) else (value,)
    if len(sides) not in (1, 3) or any(isinstance(n, int) and not 1 <= n <= most for n in sides):
        raise ConfigError(
            f"{info.field_name} = {shown(value)}: must be from 1 to {most:,}, or three of them for volumes"
        )
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


def _shares(value: object) -> object:
    """`0.5`, or `0,0,1` of the command line and lists of YAML as a tuple."""
    parts = value.split(",") if isinstance(value, str) and "," in value else value
    if not isinstance(parts, list):
        return _number(value)
    found = tuple(map(_number, parts))
    if not all(isinstance(share, int | float) and 0 <= share <= 1 for share in found):
        raise ConfigError(f"grid_jitter = {shown(value)}: must be from 0 to 1, one number or one per axis")
    return tuple(map(float, found))  # type: ignore[arg-type]


def _stages(value: object) -> object:
    """`3=none`, or `2=so2,4=none`: from which stage on, what is left of the group."""
    if isinstance(value, str) and not re.fullmatch(_STAGES, value):
        raise ConfigError(
            f"restrict = {shown(value)}: expected STAGE=GROUP, such as 3=none, the group one of {', '.join(SUBGROUPS)}"
        )
    return value


Number = Annotated[float, BeforeValidator(_number)]
Share = Annotated[float, Field(ge=0, le=1)]
Shares = Annotated[Share | tuple[Share, ...], BeforeValidator(_shares)]
"""From 0 to 1, for all axes of a group or one per axis."""
Counts = Annotated[Annotated[int, Field(ge=1, le=MOST_ELEMENTS)] | tuple[int, ...], BeforeValidator(_counts)]
"""How many elements of a group: a whole number, or of a product one per factor."""
Sides = Annotated[int | tuple[int, int, int], BeforeValidator(_size)]
"""One side, or three of a volume."""
Size = Annotated[int | tuple[int, int, int] | None, BeforeValidator(_size)]
"""The same, or none."""
Interval = Annotated[tuple[float, float] | None, BeforeValidator(_interval)]
Stages = Annotated[str | None, BeforeValidator(_stages)]
"""From which stages on a network is restricted, and to what: `2=so2,4=none`."""
Widths = Annotated[tuple[Annotated[int, Field(ge=1, le=8192)], ...], BeforeValidator(_widths)]


def total(counts: int | tuple[int, ...]) -> int:
    """The product of all factors."""
    return counts if isinstance(counts, int) else math.prod(counts)


def written(value: object, between: str = "x") -> str:
    """As on the command line: `8`, `8x4`; with other words between."""
    return between.join(map(str, value)) if isinstance(value, tuple) else str(value)
