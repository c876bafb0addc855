"""Volumes with labels as users have them: scans in one folder per class, or in any folder with a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from .arrays import Array
from .centred import Centred, box_notes, box_of
from .class_folders import FEWEST, check_same_classes, has_splits, list_classes, split_folder
from .files import DataError
from .scans import Reading, Scan, cube_side
from .scans.read import SCAN_FORMATS, is_scan, read_scan
from .split import ALL, SPLITS, Split
from .spool import Spool
from .store import Item, cache_folder, file_key, stored
from .table import Samples, Table, labels_of, relative

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
    table = labels_of(Path(labels), path, kind, SCANS) if labels else _listed(path, 1 if split == ALL else FEWEST)
    names = [relative(file, path) for file in table.files]
    keys = [f"{name} {file_key(file)}" for name, file in zip(names, table.files, strict=True)]
    scans = stored(path, "\n".join([*keys, str(reading)]), lambda whole: _items(path, table.files, reading, whole))
    rows = table.rows_of(split, names, scans.marks, fold, folds)
    sizes = [shape[1:] for shape in scans.shapes]
    space = box_of(size) if size is not None else tuple(max(sides) for sides in zip(*sizes, strict=True))
    side = float(scans.index["side"])
    said = f"voxels are cubes of {side:g} mm; intensities are normalised {reading.words}"
    found = Split(
        Centred(scans, space), table.targets[rows], table.names, rows=rows, channels_last=True, names=names,
        dealt=table.splits is None, kind=table.kind, notes=[*table.notes, said, *box_notes(space, sizes)],
    )  # fmt: skip
    found.side, found.voxels = side, float(np.median([cube_side(own) for own in scans.spacings]))
    return found


def _listed(path: Path, fewest: int) -> Table:
    """What class folders say, as a table would."""
    given = has_splits(path)
    parts = {split: split_folder(path, split) for split in SPLITS} if given else {"": path}
    found = {split: list_classes(folder, SCANS, fewest) for split, folder in parts.items()}
    if problems := [problem for _, wrong in found.values() for problem in wrong]:
        raise DataError(problems)
    tables = {split: table for split, (table, _) in found.items()}
    first = next(iter(tables.values()))
    for split, table in tables.items():
        check_same_classes(parts[split], table, first)
    return Table(
        tuple(file for table in tables.values() for file in table.files), "classes", first.names,
        np.concatenate([table.targets for table in tables.values()]),
        tuple(split for split, table in tables.items() for _ in table.files) if given else None, None,
        tuple(note for table in tables.values() for note in table.notes),
    )  # fmt: skip


def _items(path: Path, files: Sequence[Path], reading: Reading, whole: dict[str, Array]) -> Iterator[tuple[int, Item]]:
    """All scans on cubes of one side; DataError, before any is kept, with every one that cannot be used."""
    problems: list[str] = []
    scans: dict[Path, tuple[Scan, Callable[[], Array]]] = {}
    with Spool(cache_folder(path)) as spool:
        for file in files:
            try:
                scan = read_scan(file)
            except DataError as error:
                problems += error.problems
            else:
                scans[file] = replace(scan, values=np.empty((len(scan.values), 0))), spool.put(scan.values)
        counts = Counter(len(scan.values) for scan, _ in scans.values())
        usual, count = max(counts.items(), key=lambda own: own[1], default=(1, 0))
        for file, (scan, _) in scans.items():
            if (channels := len(scan.values)) != usual:
                what = f"{channels} channels (a fourth axis)" if channels > 1 else "one channel"
                problems.append(f"{file}: has {what} where {count} volumes have {usual}; save one volume per file")
        if problems:
            raise DataError(problems)
        fixed = reading.for_all([scan.spacing for scan, _ in scans.values()])
        whole["side"] = np.array(fixed.side)
        for row, (scan, values) in enumerate(scans.values()):
            yield row, Item.of(fixed.samples(replace(scan, values=values())), spacing=scan.spacing)
