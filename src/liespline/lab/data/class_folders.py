"""One folder per class, or such folders under train, valid and test: which files are there, and of which class."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .files import NAMED, DataError
from .table import Samples, Table

FEWEST = 3  # one per class for each of train, valid and test


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


def list_classes(path: Path, what: Samples, fewest: int = FEWEST) -> tuple[Table, list[str]]:
    """What a folder of class folders holds, with a note on what is left out, and why classes have too few."""
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
    count = "1 entry is" if len(others) == 1 else f"{len(others)} entries are"
    notes = [f"{count} left out, not {what.formats}: {some(others, path)}"] * bool(others)
    classes = tuple(folder.name for folder in folders)
    return Table(tuple(files), "classes", classes, np.array(labels, np.int64), None, None, tuple(notes)), problems


def check_same_classes(folder: Path, table: Table, train: Table) -> None:
    """Refuse folders train, valid and test of different classes."""
    if table.names != train.names:
        raise DataError(f"{folder}: has classes {table.names}; train has {train.names}: both must be the same")


def some(entries: Sequence[Path], root: Path) -> str:
    """The first few, by their names below `root`."""
    return ", ".join(str(entry.relative_to(root)) for entry in entries[:NAMED]) + ", …" * (len(entries) > NAMED)
