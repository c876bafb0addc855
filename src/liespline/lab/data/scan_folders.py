"""Volumes with labels as users have them: scans in one folder per class, or in any folder with a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .centred import Centred, box_notes, box_of
from .class_folders import FEWEST, Samples, has_splits, list_classes, split_folder
from .files import DataError
from .folds import dealt_rows, rows_of
from .labelled import notes_of, relative, splits_in
from .ragged import Content, Item, Ragged, cached_items
from .rows import Array, file_key
from .scans import SCAN_FORMATS, Reading, cube_side, is_scan, read_scan
from .split import ALL, SPLITS, Split
from .table import Table, read_table

SCANS = Samples("volumes", SCAN_FORMATS, is_scan)


def load_scans(
    path: Path,
    split: str,
    reading: Reading | None = None,
    *,
    labels: Path | None = None,
    kind: str | None = None,
    size: int | tuple[int, ...] | None = None,
    fold: int = 0,
    folds: int | None = None,
) -> Split:
    """A split of all scans: float32 volumes (B, C, *space) on cubes, targets as folders or the table say.

    All are put in the middle of one box, of `size` or as large as the largest. Read once and kept.
    """
    path, reading = Path(path), reading or Reading()
    table, notes = _from_table(path, labels, kind) if labels else _from_folders(path, 1 if split == ALL else FEWEST)
    names = [relative(file, path) for file in table.files]
    keys = [f"{name} {file_key(file)}" for name, file in zip(names, table.files, strict=True)]
    items = cached_items(path, "\n".join([*keys, str(reading)]), lambda: _read(table.files, reading))
    if split == ALL:
        rows = np.arange(len(names))
    elif table.splits is None and labels is None:
        rows = dealt_rows(names, table.targets, items.marks, split, fold, folds)
    else:
        rows = rows_of(split, splits_in(table, names, items.marks, fold, folds))
    space = _box(items, size)
    found = Split(
        Centred(items, space), table.targets[rows], table.names, rows=rows, channels_last=True, names=names,
        dealt=table.splits is None, kind=table.kind, notes=[*notes, *_notes(items, space, reading)],
    )  # fmt: skip
    found.side = float(items.index["side"])
    found.voxels = float(np.median([cube_side(own) for own in items.spacings]))
    return found


def table_of(path: Path, labels: Path, kind: str | None = None) -> Table:
    """The table of a folder's scans; DataError for rows that name something else."""
    table = read_table(labels, path, kind)
    if not table.names:
        raise DataError(f"{labels}: has no column besides file, split and group; add one with what is to be learned")
    if other := [file for file in table.files if not is_scan(file)]:
        raise DataError([f"{file}: is no volume; expected {SCANS.formats}" for file in other])
    return table


def _from_table(path: Path, labels: Path, kind: str | None) -> tuple[Table, list[str]]:
    table = table_of(path, labels, kind)
    return table, notes_of(table, "volumes")


def _from_folders(path: Path, fewest: int) -> tuple[Table, list[str]]:
    """What class folders say, as a table would."""
    given = has_splits(path)
    parts = {split: split_folder(path, split) for split in SPLITS} if given else {"": path}
    found = {split: list_classes(folder, SCANS, fewest) for split, folder in parts.items()}
    classes = next(iter(found.values())).classes
    for split, listing in found.items():
        if listing.classes != classes:
            raise DataError(
                f"{parts[split]}: has classes {listing.classes}; train has {classes}: both must be the same"
            )
    files = tuple(file for listing in found.values() for file in listing.files)
    targets = np.concatenate([listing.labels for listing in found.values()])
    splits = tuple(split for split, listing in found.items() for _ in listing.files) if given else None
    notes = [note for listing in found.values() for note in listing.notes]
    return Table(files, "classes", classes, targets, splits, None), notes


def _read(files: Sequence[Path], reading: Reading) -> Content:
    """All scans on cubes of one side; DataError, before any is kept, with every one that cannot be used."""
    problems: list[str] = []
    spacings: list[tuple[float, ...]] = []
    channels: dict[int, list[Path]] = defaultdict(list)
    for file in files:
        try:
            scan = read_scan(file)
        except DataError as error:
            problems += error.problems
            continue
        spacings.append(scan.spacing)
        channels[len(scan.values)].append(file)
    usual = max(channels, key=lambda count: len(channels[count]), default=1)
    for count, odd in channels.items():
        if count != usual:
            what = f"{count} channels (a fourth axis)" if count > 1 else "one channel"
            others = f"{len(channels[usual])} volumes have {usual}"
            problems += [f"{file}: has {what} where {others}; save one volume per file" for file in odd]
    if problems:
        raise DataError(problems)
    fixed, no_mask = reading.for_all(spacings), np.zeros(0, np.uint8)
    about: dict[str, Array] = {"classes": np.zeros(0, str), "side": np.array(fixed.side)}
    kept = zip(files, spacings, strict=True)
    return about, (Item(fixed.samples(read_scan(file)), no_mask, spacing=own) for file, own in kept)


def _box(items: Ragged, size: int | tuple[int, ...] | None) -> tuple[int, ...]:
    if size is not None:
        return box_of(size)
    return tuple(max(sides) for sides in zip(*(shape[1:] for shape in items.shapes), strict=True))


def _notes(items: Ragged, space: tuple[int, ...], reading: Reading) -> list[str]:
    side = float(items.index["side"])
    notes = [f"voxels are cubes of {side:g} mm; intensities are normalised {reading.words}"]
    return [*notes, *box_notes(space, [shape[1:] for shape in items.shapes])]
