"""One look at every image of a split: its fingerprint, and the values in it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from .split import Split

# Unsigned integers come as shares of their largest value, floats as they are: beyond this factor they do not match.
_UNLIKE = 8.0


@dataclass(frozen=True)
class Survey:
    """What the images of a split are, one entry for each."""

    split: Split
    labels: list[str]
    """The class of an image; for other targets a fingerprint of them."""
    marks: list[str]
    """Fingerprints of the pixels, as they are decoded."""
    dtype: str
    statistics: Tensor
    """Minimum, mean and maximum of each image's channels, as a network would see them: (N, 3, C)."""

    @property
    def low(self) -> float:
        """The lowest of all values."""
        return min(self.statistics[:, 0].flatten().tolist(), default=math.inf)

    @property
    def high(self) -> float:
        """The highest of all values."""
        return max(self.statistics[:, 2].flatten().tolist(), default=-math.inf)

    @property
    def shape(self) -> tuple[int, ...]:
        """Channels and size."""
        return (self.split.in_channels, *self.split.space)


def survey(split: Split) -> Survey:
    """What is known of every image; what was not decoded into a store is read once."""
    seen = split.seen
    return Survey(split, split.labels, seen.marks, seen.dtype, seen.statistics)


def unlike(surveys: Mapping[str, Survey], where: str) -> list[str]:
    """Why splits cannot belong together: other sizes, other kinds of numbers, other ranges."""
    names = list(surveys)
    first, problems = surveys[names[0]], []
    for name in names[1:]:
        other = surveys[name]
        if other.shape != first.shape:
            what = f"images of {_size(other.shape)}; {names[0]} has {_size(first.shape)}"
        elif other.dtype != first.dtype and "float" in (other.dtype + first.dtype):
            what = f"{other.dtype} images; {names[0]} has {first.dtype}"
        elif not _alike(first, other):
            what = f"values from {_range(other)}; {names[0]} has {_range(first)}"
        else:
            continue
        problems.append(f"{where}: {name} has {what}: bring all splits to the same")
    return problems


def copies(surveys: Mapping[str, Survey]) -> list[str]:
    """Remarks on images that are there more than once: in two classes, in two splits, or in one."""
    places: dict[str, list[tuple[str, str, str]]] = defaultdict(list)  # mark -> split, class, name
    for split, found in surveys.items():
        labels = found.labels if found.split.targets.ndim == 1 else [""] * len(found.labels)
        for name, label, mark in zip(found.split.names, labels, found.marks, strict=True):
            places[mark].append((split, label, name))
    kinds: dict[str, list[list[tuple[str, str, str]]]] = {
        "are the same in two classes: one of the two is wrong": [],
        "are in two splits: what is learned by heart is then scored": [],
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


def _example(group: list[tuple[str, str, str]]) -> str:
    (split, _, name), (other_split, _, other) = group[0], group[-1]
    return f"{split} {name} and {other_split} {other}" if split != other_split else f"{name} and {other}"


def _alike(one: Survey, other: Survey) -> bool:
    widths = sorted(max(abs(s.low), abs(s.high)) for s in (one, other))
    return widths[1] == 0 or widths[1] < _UNLIKE * widths[0]


def _size(shape: tuple[int, ...]) -> str:
    return f"{'×'.join(map(str, shape[1:]))} with {shape[0]} channel{'s' * (shape[0] > 1)}"


def _range(found: Survey) -> str:
    return f"{found.low:.4g} to {found.high:.4g} ({found.dtype})"
