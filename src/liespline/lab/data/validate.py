"""Whether the splits of a set belong together, and what is odd about their images."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

from .files import DataError
from .split import Split

# Unsigned integers come as shares of their largest value, floats as they are: beyond this factor they do not match.
_UNLIKE = 8.0
Place = tuple[str, str, str]
"""An image: split, class, name."""


def validate(splits: Mapping[str, Split], where: str) -> list[str]:
    """Remarks on images that are there more than once; DataError for splits of other sizes, numbers or ranges."""
    names = list(splits)
    if problems := [problem for name in names[1:] if (problem := _unlike(splits, names[0], name))]:
        raise DataError([f"{where}: {problem}: bring all splits to the same" for problem in problems])
    return _copies(splits)


def value_limits(split: Split) -> tuple[float, float]:
    """The lowest and the highest of all values."""
    found = split.seen.statistics
    low, high = (found[:, side].flatten().tolist() for side in (0, 2))
    return min(low, default=math.inf), max(high, default=-math.inf)


def size_words(shape: Sequence[int]) -> str:
    """Channels and size, for people."""
    return f"{'×'.join(map(str, shape[1:]))} with {shape[0]} channel{'s' * (shape[0] > 1)}"


def _unlike(splits: Mapping[str, Split], one: str, other: str) -> str | None:
    """Why a split cannot belong to another one."""
    pair = [splits[one], splits[other]]
    shapes = [(split.in_channels, *split.space) for split in pair]
    dtypes, limits = [split.seen.dtype for split in pair], [value_limits(split) for split in pair]
    widths = sorted(max(map(abs, limit)) for limit in limits)
    ranges = [f"{low:.4g} to {high:.4g} ({dtype})" for (low, high), dtype in zip(limits, dtypes, strict=True)]
    if shapes[0] != shapes[1]:
        return f"{other} has images of {size_words(shapes[1])}; {one} has {size_words(shapes[0])}"
    if dtypes[0] != dtypes[1] and "float" in "".join(dtypes):
        return f"{other} has {dtypes[1]} images; {one} has {dtypes[0]}"
    if widths[1] and widths[1] >= _UNLIKE * widths[0]:
        return f"{other} has values from {ranges[1]}; {one} has {ranges[0]}"
    return None


def _copies(splits: Mapping[str, Split]) -> list[str]:
    """Remarks on images that are there more than once: in two classes, in two splits, or in one."""
    places: dict[str, list[Place]] = defaultdict(list)  # by fingerprint
    for split, found in splits.items():
        labels = found.labels if found.targets.ndim == 1 else [""] * len(found)
        for name, label, mark in zip(found.names, labels, found.seen.marks, strict=True):
            places[mark].append((split, label, name))
    kinds: dict[str, list[list[Place]]] = {
        "are the same in two classes: one of the two is wrong": [],
        "are in two splits: what the network overfits to is then scored": [],
        "are there more than once": [],
    }
    two_classes, two_splits, others = kinds.values()
    for group in places.values():
        if len({label for _, label, _ in group}) > 1:
            two_classes.append(group)
        elif len({split for split, _, _ in group}) > 1:
            two_splits.append(group)
        elif len(group) > 1:
            others.append(group)
    return [
        f"{sum(map(len, groups)):,} images {what}: {_example(groups[0])}{', …' * (len(groups) > 1)}"
        for what, groups in kinds.items()
        if groups
    ]


def _example(group: list[Place]) -> str:
    (split, _, name), (other_split, _, other) = group[0], group[-1]
    return f"{split} {name} and {other_split} {other}" if split != other_split else f"{name} and {other}"
