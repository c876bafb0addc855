"""Which files a set has, with their labels, splits and groups: as folders of classes say, or a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .arrays import Array
from .files import DataError, some
from .folds import deal
from .split import ALL, SPLITS
from .store import file_key

FEWEST = 3  # one per class for each of train, valid and test
SPLIT_FOLDERS = {"train": ("train",), "valid": ("valid", "val"), "test": ("test",)}


@dataclass(frozen=True)
class Samples:
    """What is looked for: what to call it, in which formats, and how to know it."""

    noun: str
    formats: str
    fits: Callable[[Path], bool]


@dataclass(frozen=True)
class Listing:
    """Files with what is known about them.

    `kind` "classes": one class per file, targets (N,) numbers of `labels`. "tags": any number of `labels` per file,
    targets (N, labels) of 0 and 1. "numbers": measurements `labels`, targets (N, labels). Without labels, as for masks,
    it says splits and groups alone. `splits` is None where we deal files out.
    """

    files: Sequence[Path]
    names: Sequence[str]
    kind: str
    labels: tuple[str, ...]
    targets: Array
    splits: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """What changes whenever a file is added, removed, renamed or replaced."""
        return "\n".join(f"{name} {file_key(file)}" for name, file in zip(self.names, self.files, strict=True))

    def rows_of(self, split: str, marks: Sequence[str] | Array, fold: int, folds: int | None) -> Array:
        """Row numbers of one split, as files and tables say or dealt out; `marks` are equal for exact copies."""
        if split == ALL:
            return np.arange(len(self.files))
        labels = self.targets if self.kind == "classes" and len(self.targets) else None
        splits = self.splits or deal(self.names, labels, self.groups, marks, fold, folds)
        rows = np.flatnonzero([own == split for own in splits])
        if not rows.size:
            raise DataError(f"no row is of split {split!r}; every one of {', '.join(SPLITS)} needs some")
        return rows


def below(root: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """The names of files below a folder; all of it for a file elsewhere."""
    return tuple(file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file) for file in files)


def given_splits(path: Path, needed: Sequence[str] = SPLITS) -> dict[str, Path]:
    """The folders train, valid and test of data that come with splits; empty where there is no folder train."""
    found = {split: path / name for split, names in SPLIT_FOLDERS.items() for name in names if (path / name).is_dir()}
    if "train" not in found:
        return {}
    if missing := [" or ".join(SPLIT_FOLDERS[split]) for split in needed if split not in found]:
        raise DataError(f"{path}: has a folder train but none named {missing[0]}; add it, or rename train")
    return found


def list_classes(path: Path, what: Samples, split: str = "") -> tuple[Listing, list[str]]:
    """What folders of classes hold, in train, valid and test where these are there; and why classes have too few."""
    if not path.is_dir():
        raise DataError(f"{path}: is no folder; expected a folder with one folder per class in it")
    files: list[Path] = []
    targets: list[int] = []
    splits: list[str] = []
    others: list[Path] = []
    problems: list[str] = []
    classes: tuple[str, ...] = ()
    fewest, given = (1 if split == ALL else FEWEST), given_splits(path)
    for name, part in (given or {"": path}).items():
        entries = visible(part)
        folders = [entry for entry in entries if entry.is_dir()]
        if len(folders) < (2 if fewest == FEWEST else 1):
            found = f"only {folders[0].name!r}" if folders else "none"
            raise DataError(
                f"{part}: needs at least two class folders and has {found}; put each class in its own folder"
            )
        own = tuple(folder.name for folder in folders)
        classes = classes or own
        if own != classes:
            raise DataError(f"{part}: has classes {own}; train has {classes}: both must be the same")
        others += [entry for entry in entries if entry not in folders]
        for label, folder in enumerate(folders):
            inside = visible(folder)
            right = [entry for entry in inside if what.fits(entry)]
            others += [entry for entry in inside if entry not in right]
            if len(right) < fewest:
                problems.append(
                    f"{folder}: has {len(right)} {what.noun} ({what.formats}); at least {fewest} are needed"
                )
            files += right
            targets += [label] * len(right)
            splits += [name] * len(right)
    count = "1 entry is" if len(others) == 1 else f"{len(others)} entries are"
    notes = [f"{count} left out, not {what.formats}: {some(below(path, others))}"] * bool(others)
    return Listing(
        files, below(path, files), "classes", classes, np.array(targets, np.int64),
        tuple(splits) if given else None, notes=tuple(notes),
    ), problems  # fmt: skip


def visible(folder: Path) -> list[Path]:
    """What is in a folder, in the order of names, but for hidden files."""
    return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
