"""What a ready network was made of, as JSON: numbers, words, and grids with every element, so that none is guessed."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import groups
from ..grids import Grid
from ..groups import Group

_GROUPS: dict[str, type[Group]] = {
    name: kind for name in groups.__all__ if issubclass(kind := getattr(groups, name), Group) and kind is not Group
}


def to_json(value: Any) -> Any:
    """An argument of a ready network as JSON keeps it; float64 numbers come back bit by bit."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Tensor():
            return value.tolist()
        case Grid():
            return {
                "grid": to_json(value.group), "elements": value.elements.tolist(), "weights": value.weights.tolist(),
                "spacing": to_json(value.spacing),
            }  # fmt: skip
        case Group():
            if _GROUPS.get(type(value).__name__) is not type(value):
                raise ValueError(
                    f"{value!r} is no group of liespline, and config.json names groups by their class: save its "
                    "state_dict() and load it where that class is"
                )
            return {"group": type(value).__name__, "arguments": [to_json(each) for each in _arguments(value)]}
        case Mapping():
            return {"pairs": [[to_json(key), to_json(item)] for key, item in value.items()]}
        case Sequence():
            return [to_json(item) for item in value]
    raise ValueError(f"{value!r} is a {type(value).__name__}, which config.json does not keep; pass plain numbers")


def from_json(value: Any) -> Any:
    """The argument again."""
    match value:
        case {"grid": group, "elements": elements, "weights": weights, "spacing": spacing}:
            return Grid(from_json(group), _float64(elements), _float64(weights), from_json(spacing))
        case {"group": name, "arguments": arguments}:
            if name not in _GROUPS:
                raise ValueError(f"group {name!r}: this liespline has {', '.join(_GROUPS)}")
            return _GROUPS[name](*(from_json(argument) for argument in arguments))
        case {"pairs": pairs}:
            return {from_json(key): from_json(item) for key, item in pairs}
        case list():
            return [from_json(item) for item in value]
    return value


def _arguments(group: Group) -> list[Any]:
    """What its class is called with; groups keep that under the same names."""
    found: list[Any] = []
    for parameter in inspect.signature(type(group)).parameters.values():
        own = getattr(group, parameter.name)
        found += own if parameter.kind is parameter.VAR_POSITIONAL else [own]
    return found


def _float64(numbers: Any) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64, device="cpu")
