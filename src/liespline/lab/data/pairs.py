"""Images and masks as users have them: a set to train on, split by folders, by a table or by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from .files import NAMED, DataError
from .mask_split import MaskSplit
from .mask_store import MaskStore
from .pair_files import CLASSES, Pair, find_pairs
from .pair_items import mask_items, read_pairs
from .scans import Reading
from .scans.read import stem
from .split import SPLITS
from .spool import Spool
from .store import cache_folder, file_key, stored
from .table import Table, read_table

GIVEN = {"train": ("train",), "valid": ("valid", "val"), "test": ("test",)}


def load_pairs(
    path: Path,
    split: str,
    reading: Reading | None = None,
    *,
    labels: Path | None = None,
    patch: int | None = None,
    fold: int = 0,
    folds: int | None = None,
) -> MaskSplit:
    """A split of the pairs in `path`, or DataError with every problem of every file.

    A table `labels` says in which split and group images are. Read once and kept.
    """
    path, reading = Path(path), reading or Reading()
    if not path.is_dir():
        raise DataError(f"{path}: is no folder; expected a folder with folders images and masks in it")
    try:
        items, pairs, splits, notes = _decoded(path, reading)
    except DataError as error:  # one report of all that is wrong
        raise DataError([*error.problems, *_wrong_in(labels, path)]) from error
    names = [pair.name for pair in pairs]
    table = Table((), "masks", (), np.zeros(0), splits, None)
    if labels is not None:
        table = _as_in(labels, path, table, names)
    if folds is not None:
        table = replace(table, splits=None)
    rows = table.rows_of(split, names, items.marks, fold, folds, some=False)
    notes += _remarks(items, reading)
    return MaskSplit(items, names, rows, patch, notes, dealt=table.splits is None)


def given_splits(path: Path) -> dict[str, Path]:
    """The folders train, valid and test of data that come with splits; empty where they do not."""
    found = {split: path / name for split, names in GIVEN.items() for name in names if (path / name).is_dir()}
    if found and ("train" not in found or "valid" not in found):
        raise DataError(f"{path}: has a folder {next(iter(found.values())).name}; both train and valid are needed then")
    return found


def _decoded(path: Path, reading: Reading) -> tuple[MaskStore, list[Pair], tuple[str, ...] | None, list[str]]:
    """All pairs, decoded; the split of each where folders say it; and what was left out."""
    parts, pairs, splits, problems, notes = given_splits(path), [], [], [], []
    for split, folder in (parts or {"": path}).items():
        found, wrong, remarks = find_pairs(folder)
        pairs += [Pair(f"{split}/{p.name}" if split else p.name, p.image, p.mask) for p in found]
        splits += [split] * len(found)
        problems += wrong
        notes += remarks
    if problems:
        with Spool(cache_folder(path)) as spool:
            read = read_pairs(path, pairs, splits, spool)
        raise DataError([*problems, *read.masks, *read.others])
    stated = (path / CLASSES).read_bytes().hex() if (path / CLASSES).exists() else ""
    key = "\n".join(f"{p.name} {file_key(p.image)} {file_key(p.mask)}" for p in pairs) + f"\n{reading} {stated}"
    kept = stored(path, key, lambda whole: mask_items(path, pairs, splits, reading, whole))
    return MaskStore(kept.path, kept.index), pairs, tuple(splits) if parts else None, notes


def _as_in(labels: Path, path: Path, folders: Table, names: Sequence[str]) -> Table:
    """The splits and groups of a table whose column `file` names images in the folder `images`."""
    table = read_table(labels, path / "images")
    if table.names:
        raise DataError(f"{labels}: has the columns {', '.join(table.names)}; for masks it says split and group only")
    at = {stem(file): row for row, file in enumerate(table.files)}
    if missing := [name for name in names if name not in at]:
        text = ", ".join(missing[:NAMED]) + ", …" * (len(missing) > NAMED)
        raise DataError(f"{labels}: has no row for {text}; every image with a mask needs one")
    splits, groups = (own and tuple(own[at[name]] for name in names) for own in (table.splits, table.groups))
    return replace(folders, splits=splits or folders.splits, groups=groups)


def _wrong_in(labels: Path | None, path: Path) -> list[str]:
    try:
        if labels is not None:
            read_table(labels, path / "images")
    except DataError as error:
        return error.problems
    return []


def _remarks(items: MaskStore, reading: Reading) -> list[str]:
    counts, classes, side = items.counts, items.index["classes"].tolist(), float(items.index["side"])
    shares = counts.sum(0) / max(1, counts.sum())
    text = ", ".join(f"{name} {100 * share:.2g} %" for name, share in zip(classes, shares, strict=True))
    notes = [f"{len(items)} images with masks: {text}"]
    rare = [f"{name} in {n}" for name, n in zip(classes, (counts > 0).sum(0), strict=True) if n < len(SPLITS)]
    if rare:
        notes.append(f"classes in fewer than {len(SPLITS)} images, too few to train and test on: {', '.join(rare)}")
    if side:
        notes.append(f"voxels are cubes of {side:g} mm; intensities are normalised {reading.words}")
    return notes
