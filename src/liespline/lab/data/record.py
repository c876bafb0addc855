"""What a run was trained, validated and tested on, kept with the run, and what has changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .files import NAMED, DataError, existing, write_text
from .split import SPLITS, Split
from .survey import Survey, survey
from .value_range import ValueRange

FORMAT = 1
MOST_BYTES = 200_000_000
# Rows of one large file share fingerprints, so that the record stays small.
MOST_ROWS = 20_000


@dataclass(frozen=True)
class Entry:
    """One image: its class and the fingerprint of its pixels."""

    label: str
    mark: str


@dataclass(frozen=True)
class Record:
    """Every image by split and name; `dealt`: the run dealt the images out, nothing else says which is in which.

    `value_range` is that of the training images, where new ones can be compared with it.
    """

    dealt: bool
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    splits: Mapping[str, Mapping[str, Entry]]
    value_range: ValueRange | None = None

    @staticmethod
    def of(surveys: Mapping[str, Survey], value_range: ValueRange | None = None) -> Record:
        """The record of a set whose splits were looked at."""
        first = next(iter(surveys.values()))
        splits = {name: _entries(found) for name, found in surveys.items()}
        return Record(first.split.dealt, first.split.classes, first.shape, splits, value_range)

    @property
    def fingerprint(self) -> str:
        """A short name for all of it: the same images in the same splits and classes have the same."""
        content = [[split, sorted((n, e.label, e.mark) for n, e in es.items())] for split, es in self.splits.items()]
        return hashlib.blake2b(json.dumps(content).encode(), digest_size=5).hexdigest()

    def write(self, path: Path) -> None:
        """Keep it in a file."""
        splits = {name: {n: [e.label, e.mark] for n, e in es.items()} for name, es in self.splits.items()}
        about = {"format": FORMAT, "dealt": self.dealt, "classes": self.classes, "shape": self.shape}
        about |= {"value_range": asdict(self.value_range) if self.value_range is not None else None}
        write_text(path, json.dumps(about | {"fingerprint": self.fingerprint, "splits": splits}) + "\n")

    @staticmethod
    def read(path: Path) -> Record:
        """Read it back; a file that is no whole record is refused."""
        existing(path, "the record of a run's data")
        try:
            if path.stat().st_size > MOST_BYTES:
                raise ValueError("it is too large")
            values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            splits = {
                str(name): {str(n): Entry(str(label), str(mark)) for n, (label, mark) in es.items()}
                for name, es in values["splits"].items()
            }
            classes, shape = tuple(map(str, values["classes"])), tuple(map(int, values["shape"]))
            known = values.get("value_range")
            value_range = None if known is None else ValueRange.from_dict(known, shape[0])
            record = Record(bool(values["dealt"]), classes, shape, splits, value_range)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OSError) as error:
            raise DataError(f"{path}: is no record of a run's data ({str(error)[:80]})") from error
        if record.fingerprint != values.get("fingerprint"):
            raise DataError(f"{path}: was changed after the run wrote it; it does not say what the run learned from")
        return record

    def marks(self, split: str) -> set[str]:
        """The fingerprints of a split."""
        return {entry.mark for entry in self.splits.get(split, {}).values()}


@dataclass
class Changes:
    """What differs between a record and the data now; names are of the record, or of the data for `added`."""

    other: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    regrouped: list[str] = field(default_factory=list)
    renamed: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether what the record names is no longer there as it was; images that were added harm nothing."""
        return bool(self.other or self.removed or self.replaced or self.regrouped or self.renamed)

    @property
    def words(self) -> str:
        """All of it on one line."""
        kinds = {
            "removed": self.removed, "replaced by other pixels": self.replaced, "now in another class": self.regrouped,
            "renamed": self.renamed, "added": self.added,
        }  # fmt: skip
        parts = [f"{len(names):,} {kind} ({_some(names)})" for kind, names in kinds.items() if names]
        return "; ".join([*self.other, *parts])


def changes(then: Record, now: Record, splits: Sequence[str] = SPLITS) -> Changes:
    """What happened to the images of these splits of a record; only images of no split at all count as added."""
    found = Changes()
    if then.classes != now.classes:
        found.other.append(f"the classes are {', '.join(now.classes)} and were {', '.join(then.classes)}")
    if then.shape != now.shape:
        found.other.append(f"the images are {_size(now.shape)} and were {_size(then.shape)}")
        return found  # every pixel differs then
    for split in splits:
        entries = then.splits.get(split, {})
        pool = next(iter(now.splits.values())) if now.dealt else now.splits.get(split, {})
        places: dict[str, list[str]] = {}
        for name, entry in pool.items():
            places.setdefault(entry.mark, []).append(name)
        for name, entry in entries.items():
            same = pool.get(name)
            if same == entry:
                continue
            elsewhere = places.get(entry.mark, [])
            moved = next((other for other in elsewhere if pool[other].label != entry.label), None)
            if same is not None and moved is None:
                found.replaced.append(name)
            elif moved is not None:
                found.regrouped.append(f"{name} is {moved}" if moved != name else f"{name}, {pool[moved].label}")
            elif elsewhere:
                found.renamed.append(f"{name} is {elsewhere[0]}")
            else:
                found.removed.append(name)
    known = {name for es in then.splits.values() for name in es}
    marks = {entry.mark for es in then.splits.values() for entry in es.values()}
    for es in now.splits.values():
        found.added += [name for name, entry in es.items() if name not in known and entry.mark not in marks]
    return found


def record_of(splits: Mapping[str, Split]) -> Record:
    """Look at every image of a set."""
    return Record.of({name: survey(split) for name, split in splits.items()})


def _entries(found: Survey) -> dict[str, Entry]:
    names = found.split.names
    step = 1 if found.split.has_names else -(-len(names) // MOST_ROWS)
    if step <= 1:
        return {name: Entry(*pair) for name, *pair in zip(names, found.labels, found.marks, strict=True)}
    entries = {}
    for start in range(0, len(names), step):
        stop = min(start + step, len(names))
        text = " ".join(found.marks[start:stop] + found.labels[start:stop])
        mark = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        entries[f"{names[start]} to {names[stop - 1].removeprefix('row ')}"] = Entry("", mark)
    return entries


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")


def _size(shape: Sequence[int]) -> str:
    return f"{'×'.join(map(str, shape[1:]))} with {shape[0]} channel{'s' * (shape[0] > 1)}"
