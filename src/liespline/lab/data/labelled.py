"""Images with labels from a table: classes, tags, numbers or points, split by row or by group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .class_folders import Listing
from .files import DataError
from .folds import assign, rows_of, together
from .images import decode
from .pictures import SUFFIXES
from .rows import Array, cached_rows, file_key, marks_of
from .split import ALL, Split
from .table import Table, read_table


def load_labelled(
    path: Path,
    labels: Path,
    split: str,
    *,
    kind: str | None = None,
    size: int | None = None,
    fold: int = 0,
    folds: int | None = None,
) -> Split:
    """A split of the images that a table names: uint8 or uint16 images (B, C, H, W), targets as the table has them."""
    table = read_table(Path(labels), Path(path), kind)
    if not table.names:
        raise DataError(f"{labels}: has no column besides file, split and group; add one with what is to be learned")
    if other := [file for file in table.files if file.suffix.lower() not in SUFFIXES]:
        raise DataError([f"{file}: is no PNG, JPEG or TIFF file" for file in other])
    names = [relative(file, Path(path)) for file in table.files]
    listing = Listing(list(table.files), np.zeros(len(names), np.int64), table.names, ())
    key = "\n".join(f"{name} {file_key(file)}" for name, file in zip(names, table.files, strict=True)) + f"\n{size}"
    images = cached_rows(Path(path), key, lambda: decode(listing, size))
    rows = (
        np.arange(len(names))
        if split == ALL
        else rows_of(split, splits_in(table, names, marks_of(images), fold, folds))
    )
    return Split(
        images, table.targets[rows], table.names, rows=rows, channels_last=len(images.shape) == 3, names=names,
        dealt=table.splits is None, kind=table.kind, notes=notes_of(table, "images"),
    )  # fmt: skip


def load_points(path: Path, labels: Path, split: str, *, fold: int = 0, folds: int | None = None) -> Split:
    """A split of images with points: targets (B, L, 2) in pixels, from columns NAME_row and NAME_column."""
    found = load_labelled(path, labels, split, kind="numbers", fold=fold, folds=folds)
    names, places = _points(labels, found.classes)
    found.classes, found.kind = names, "points"
    found.targets = found.targets[:, places].unflatten(1, (len(names), 2))
    inside = ((found.targets > -1) & (found.targets < found.targets.new_tensor(found.space))).flatten(1).all(1)
    if not inside.all():
        outside = [name for name, good in zip(found.names, inside, strict=True) if not good]
        size = "×".join(map(str, reversed(found.space)))
        raise DataError([f"{labels}: {name} has a point outside the image of {size}" for name in outside])
    return found


def _points(labels: Path, columns: tuple[str, ...]) -> tuple[tuple[str, ...], list[int]]:
    """Names of points, and for each the numbers of its row and column among the label columns."""
    names = tuple(name.removesuffix("_row") for name in columns if name.endswith("_row"))
    wanted = [f"{name}_{axis}" for name in names for axis in ("row", "column")]
    if not names or sorted(wanted) != sorted(columns):
        raise DataError(f"{labels}: has columns {', '.join(columns)}; a point is two, such as eye_row and eye_column")
    return names, [columns.index(name) for name in wanted]


def splits_in(
    table: Table, names: Sequence[str], marks: Sequence[str], fold: int, folds: int | None
) -> tuple[str, ...]:
    """The split of each row: as the table says, or dealt out so that no group and no copies are in two."""
    if table.splits is not None:
        return table.splits
    labels: Array | None = table.targets if table.kind == "classes" and len(table.targets) else None
    groups = together(names, table.groups, marks)
    return tuple(assign(names, None if labels is None else labels.tolist(), groups, fold=fold, folds=folds))


def relative(file: Path, folder: Path) -> str:
    """The name of a file below its folder; all of it for a file elsewhere."""
    return file.relative_to(folder).as_posix() if file.is_relative_to(folder) else str(file)


def notes_of(table: Table, noun: str) -> list[str]:
    """A remark on what a table says."""
    words = {"classes": "one class each", "tags": "tags that go together in any way", "numbers": "numbers to predict"}
    groups = f", {len(set(table.groups))} groups that stay together" if table.groups else ""
    return [f"{len(table.files)} {noun} with labels {', '.join(table.names)[:200]}: {words[table.kind]}{groups}"]
