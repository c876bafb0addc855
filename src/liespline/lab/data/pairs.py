"""Images and masks as a set to train on: checked as one, decoded once, split by name or by group."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .files import NAMED, DataError
from .folds import assign, together
from .pair_decode import decode, meaning_of, unfit
from .pair_files import CLASSES, Pair, find_pairs
from .ragged import Content, Ragged, cached_items
from .rows import Array, file_key
from .scans import Reading, cube_side, stem
from .split import SPLITS
from .table import read_table

GIVEN = {"train": ("train",), "valid": ("valid", "val"), "test": ("test",)}


@dataclass(frozen=True)
class Pairs:
    """Images with masks; `splits` says for each which split it is in, None where nothing does."""

    items: Ragged
    rows: Array
    all_names: tuple[str, ...]
    classes: tuple[str, ...]
    splits: tuple[str, ...] | None
    values: tuple[int, ...]
    """What masks hold for each class."""
    side: float | None
    """The side in millimetres that all voxels were brought to; None for images."""
    notes: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    """Patient or slide of each pair, which must not be in two splits."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def names(self) -> list[str]:
        """What to call each pair."""
        return [self.all_names[int(row)] for row in self.rows]

    @property
    def in_channels(self) -> int:
        """Channels of every image."""
        return self.items.shapes[0][0]

    @property
    def space_dim(self) -> int:
        """2 for images, 3 for volumes."""
        return len(self.items.shapes[0]) - 1

    @property
    def voxels(self) -> float | None:
        """The side in millimetres of the usual voxel as it is stored; None for images."""
        sides = [cube_side(self.items.spacings[int(row)]) for row in self.rows]
        return None if self.side is None else float(np.median(sides))

    def sizes(self) -> list[tuple[int, ...]]:
        """The size of each image."""
        return [self.items.shapes[int(row)][1:] for row in self.rows]

    def split(self, name: str, fold: int = 0, folds: int | None = None) -> Pairs:
        """One split: as the folders say, or dealt out by name."""
        if self.splits is not None and folds is None:
            chosen = [own == name for own in self.splits]
        else:
            groups = together(self.names, self.groups, [self.items.marks[int(row)] for row in self.rows])
            dealt = assign(self.names, None, groups, fold=fold, folds=folds)
            chosen = [own == name for own in dealt]
        return self.named([own for own, here in zip(self.names, chosen, strict=True) if here])

    def named(self, names: Sequence[str]) -> Pairs:
        """The pairs of these names, in this order; all must be there."""
        at = {name: index for index, name in enumerate(self.names)}
        part = copy(self)
        object.__setattr__(part, "rows", self.rows[[at[name] for name in names]])
        splits = None if self.splits is None else tuple(self.splits[at[name]] for name in names)
        object.__setattr__(part, "splits", splits)
        if self.groups is not None:
            object.__setattr__(part, "groups", tuple(self.groups[at[name]] for name in names))
        return part

    def as_in(self, labels: Path, folder: Path) -> Pairs:
        """The pairs with the splits and groups of a table whose column `file` names their images in `folder`."""
        table = read_table(labels, folder / "images")
        if table.names:
            raise DataError(
                f"{labels}: has the columns {', '.join(table.names)}; for masks it says split and group only"
            )
        at = {stem(file): row for row, file in enumerate(table.files)}
        if missing := [name for name in self.names if name not in at]:
            names = ", ".join(missing[:NAMED]) + ", …" * (len(missing) > NAMED)
            raise DataError(f"{labels}: has no row for {names}; every image with a mask needs one")
        rows = [at[name] for name in self.names]
        part = copy(self)
        if table.splits is not None:
            object.__setattr__(part, "splits", tuple(table.splits[row] for row in rows))
        if table.groups is not None:
            object.__setattr__(part, "groups", tuple(table.groups[row] for row in rows))
        return part


def given_splits(path: Path) -> dict[str, Path]:
    """The folders train, valid and test of data that come with splits; empty where they do not."""
    found = {split: path / name for split, names in GIVEN.items() for name in names if (path / name).is_dir()}
    if found and ("train" not in found or "valid" not in found):
        raise DataError(f"{path}: has a folder {next(iter(found.values())).name}; both train and valid are needed then")
    return found


def load_pairs(path: Path, reading: Reading | None = None) -> Pairs:
    """All pairs in `path`, or DataError with every problem of every file."""
    path, reading = Path(path), reading or Reading()
    if not path.is_dir():
        raise DataError(f"{path}: is no folder; expected a folder with folders images and masks in it")
    parts = given_splits(path)
    pairs: list[Pair] = []
    splits: list[str] = []
    problems: list[str] = []
    notes: list[str] = []
    for split, folder in (parts or {"": path}).items():
        found, wrong, remarks = find_pairs(folder)
        pairs += [Pair(f"{split}/{p.name}" if split else p.name, p.image, p.mask) for p in found]
        splits += [split] * len(found)
        problems += wrong
        notes += remarks
    if problems:
        raise DataError(list(dict.fromkeys([*problems, *unfit(pairs)])))
    stated = (path / CLASSES).read_bytes().hex() if (path / CLASSES).exists() else ""
    key = "\n".join(f"{p.name} {file_key(p.image)} {file_key(p.mask)}" for p in pairs) + f"\n{reading} {stated}"

    def build() -> Content:
        try:
            meaning = meaning_of(path, pairs, splits, reading)
        except DataError as error:  # one report of all that is wrong
            raise DataError(list(dict.fromkeys([*error.problems, *unfit(pairs)]))) from error
        about = {"classes": np.array(meaning.classes), "values": np.array(meaning.values)}
        about["side"] = np.array(meaning.side or 0.0)
        return about, decode(pairs, meaning, reading)

    items = cached_items(path, key, build)
    classes = tuple(map(str, items.index["classes"]))
    side = float(items.index["side"]) or None
    notes += _remarks(items, classes, side, reading)
    names = tuple(pair.name for pair in pairs)
    values = tuple(map(int, items.index["values"]))
    given = tuple(splits) if parts else None
    return Pairs(items, np.arange(len(pairs)), names, classes, given, values, side, tuple(notes))


def _remarks(items: Ragged, classes: Sequence[str], side: float | None, reading: Reading) -> list[str]:
    counts = items.counts
    shares = counts.sum(0) / max(1, counts.sum())
    text = ", ".join(f"{name} {100 * share:.2g} %" for name, share in zip(classes, shares, strict=True))
    notes = [f"{len(items)} images with masks: {text}"]
    rare = [f"{name} in {n}" for name, n in zip(classes, (counts > 0).sum(0), strict=True) if n < len(SPLITS)]
    notes += (
        [f"classes in fewer than {len(SPLITS)} images, too few to learn and test: {', '.join(rare)}"] if rare else []
    )
    if side is not None:
        notes.append(f"voxels are cubes of {side:g} mm; intensities are normalised {reading.words}")
    return notes
