"""One folder per class, or such folders under train, valid and test: which files are there, and of which class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .files import NAMED, DataError
from .rows import Array
from .split import SPLITS

FEWEST = 3  # one per class for each of train, valid and test


@dataclass(frozen=True)
class Samples:
    """What is looked for in the folders: what to call it, in which formats, and how to know it."""

    noun: str
    formats: str
    fits: Callable[[Path], bool]


@dataclass(frozen=True)
class Listing:
    """The samples of a folder with their classes."""

    files: list[Path]
    labels: Array
    classes: tuple[str, ...]
    notes: tuple[str, ...]


def has_splits(path: Path) -> bool:
    """Whether the folder comes with folders train, valid and test."""
    return (path / "train").is_dir()


def split_folder(path: Path, split: str) -> Path:
    """Where a split of data that come with splits lies."""
    names = ("valid", "val") if split == "valid" else (split,)
    for name in names:
        if (path / name).is_dir():
            return path / name
    raise DataError(
        f"{path}: has a folder train but none named {' or '.join(names)}; add it, or leave only class folders"
    )


def split_folders(path: Path) -> list[Path]:
    """The folders that hold the class folders."""
    return [split_folder(path, split) for split in SPLITS] if has_splits(path) else [path]


def list_classes(path: Path, what: Samples, fewest: int = FEWEST) -> Listing:
    """What a folder of class folders holds, `fewest` of each class at least, and a note on what is left out."""
    if not path.is_dir():
        raise DataError(f"{path}: is no folder; expected a folder with one folder per class in it")
    seen = sorted(entry for entry in path.iterdir() if not entry.name.startswith("."))
    folders = [entry for entry in seen if entry.is_dir()]
    if len(folders) < (2 if fewest == FEWEST else 1):
        found = f"only {folders[0].name!r}" if folders else "none"
        raise DataError(f"{path}: needs at least two class folders and has {found}; put each class in its own folder")
    files: list[Path] = []
    labels: list[int] = []
    others = [entry for entry in seen if entry not in folders]
    problems = []
    for label, folder in enumerate(folders):
        entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
        right = [entry for entry in entries if what.fits(entry)]
        others += sorted(set(entries) - set(right))
        if len(right) < fewest:
            problems.append(f"{folder}: has {len(right)} {what.noun} ({what.formats}); at least {fewest} are needed")
        files += right
        labels += [label] * len(right)
    if problems:
        raise DataError(problems)
    count = "1 entry is" if len(others) == 1 else f"{len(others)} entries are"
    notes = [f"{count} left out, not {what.formats}: {some(others, path)}"]
    classes = tuple(folder.name for folder in folders)
    return Listing(files, np.array(labels, np.int64), classes, tuple(notes * bool(others)))


def some(entries: Sequence[Path], root: Path) -> str:
    """The first few, by their names below `root`."""
    return ", ".join(str(entry.relative_to(root)) for entry in entries[:NAMED]) + ", …" * (len(entries) > NAMED)
