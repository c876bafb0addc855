"""What a run was trained, validated and tested on: whether it belongs together, and what has changed since."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from .files import DataError, existing, some, write_text
from .samples import ValueRange
from .split import ALL, SPLITS, Split

FORMAT = 1
# Rows of one large file share fingerprints, so that the file stays small.
MOST_ROWS = 20_000
REMOVED, REPLACED, REGROUPED, RENAMED, ADDED = KINDS = (
    "removed", "replaced by other pixels", "now in another class", "renamed", "added",
)  # fmt: skip
# Unsigned integers come as shares of their largest value, floats as they are: beyond this factor they do not match.
_UNLIKE = 8.0
Place = tuple[str, str, str]
"""An image: split, class, name."""


class Entry(NamedTuple):
    """One image: its class, or a fingerprint of its other targets, and the fingerprint of its samples."""

    label: str
    mark: str


@dataclass(frozen=True)
class Manifest:
    """Every image by split and name; `dealt`: the run dealt the images out, nothing else says which is in which.

    `value_range` is that of the training images, where new ones can be compared with it.
    """

    dealt: bool
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    splits: Mapping[str, Mapping[str, Entry]]
    value_range: ValueRange | None = None

    @staticmethod
    def of(splits: Mapping[str, Split], value_range: ValueRange | None = None) -> Manifest:
        """Of a set as it is now."""
        first = next(iter(splits.values()))
        entries = {name: _entries(split) for name, split in splits.items()}
        return Manifest(first.dealt, first.classes, (first.in_channels, *first.space), entries, value_range)

    @property
    def fingerprint(self) -> str:
        """A short name for all of it: the same images in the same splits and classes have the same."""
        content = [[split, sorted((name, *entry) for name, entry in es.items())] for split, es in self.splits.items()]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=5).hexdigest()

    def write(self, path: Path) -> None:
        about = {"format": FORMAT, "dealt": self.dealt, "classes": self.classes, "shape": self.shape}
        about |= {"value_range": asdict(self.value_range) if self.value_range is not None else None}
        write_text(path, json.dumps(about | {"fingerprint": self.fingerprint, "splits": self.splits}) + "\n")

    @staticmethod
    def read(path: Path) -> Manifest:
        """Read it back; a file that is no whole manifest is refused."""
        existing(path, "the images of a run (data.json)")
        try:
            text = path.read_bytes()
            manifest = TypeAdapter(Manifest).validate_json(text)
        except (ValueError, OSError) as error:
            raise DataError(f"{path}: does not name the images of a run ({str(error)[:80]})") from error
        if manifest.fingerprint != json.loads(text).get("fingerprint"):
            raise DataError(f"{path}: was changed after the run wrote it; it does not say what the run was trained on")
        return manifest

    def marks(self, split: str) -> set[str]:
        """The fingerprints of a split."""
        return {entry.mark for entry in self.splits.get(split, {}).values()}

    def changes(self, now: Mapping[str, Split], splits: Sequence[str] = SPLITS) -> Changes:
        """What happened to the images of these splits; only images of no split at all count as added."""
        found, then, present = Changes(), self, Manifest.of(now)
        if then.classes != present.classes:
            found.other.append(f"the classes are {', '.join(present.classes)} and were {', '.join(then.classes)}")
        if then.shape != present.shape:
            found.other.append(f"the images are {size_words(present.shape)} and were {size_words(then.shape)}")
            return found  # every sample differs then
        for split in splits:
            pool = present.splits.get(ALL) if ALL in present.splits else present.splits.get(split, {})
            found.add(then.splits.get(split, {}), pool or {})
        known = {name for entries in then.splits.values() for name in entries}
        marks = {mark for split in then.splits for mark in then.marks(split)}
        for entries in present.splits.values():
            found.images[ADDED] += [n for n, entry in entries.items() if n not in known and entry.mark not in marks]
        return found


@dataclass
class Changes:
    """What differs between a manifest and the data now; names are of the manifest, or of the data for "added"."""

    other: list[str] = field(default_factory=list)
    images: dict[str, list[str]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def __bool__(self) -> bool:
        """Whether what the manifest names is no longer there as it was; images that were added harm nothing."""
        return bool(self.other) or any(self.images[kind] for kind in KINDS if kind != ADDED)

    @property
    def added(self) -> list[str]:
        """Images that the manifest does not have."""
        return self.images[ADDED]

    def add(self, then: Mapping[str, Entry], now: Mapping[str, Entry]) -> None:
        """What happened to the images of one split, looked for among those of now."""
        places: dict[str, list[str]] = defaultdict(list)
        for name, entry in now.items():
            places[entry.mark].append(name)
        for name, entry in then.items():
            if now.get(name) == entry:
                continue
            elsewhere = places.get(entry.mark, [])
            regrouped = next((other for other in elsewhere if now[other].label != entry.label), None)
            if regrouped is not None:
                said = f"{name}, {now[name].label}" if regrouped == name else f"{name} is {regrouped}"
                self.images[REGROUPED].append(said)
            elif name in now:
                self.images[REPLACED].append(name)
            elif elsewhere:
                self.images[RENAMED].append(f"{name} is {elsewhere[0]}")
            else:
                self.images[REMOVED].append(name)

    @property
    def words(self) -> str:
        """All of it on one line."""
        parts = [f"{len(names):,} {kind} ({some(names)})" for kind, names in self.images.items() if names]
        return "; ".join([*self.other, *parts])


def _entries(split: Split) -> dict[str, Entry]:
    names, labels, marks = split.names, split.labels, split.seen.marks
    step = 1 if split.has_names else -(-len(names) // MOST_ROWS)
    if step <= 1:
        return {name: Entry(*pair) for name, *pair in zip(names, labels, marks, strict=True)}
    entries = {}
    for start in range(0, len(names), step):
        stop = min(start + step, len(names))
        text = " ".join(marks[start:stop] + labels[start:stop])
        mark = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        entries[f"{names[start]} to {names[stop - 1].removeprefix('row ')}"] = Entry("", mark)
    return entries


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
