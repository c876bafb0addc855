"""A user's own images: one folder per class, such folders in train, valid and test, or any folder with a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .class_folders import FEWEST, check_same_classes, has_splits, list_classes, split_folder
from .files import NAMED, DataError
from .image_store import decoded
from .pictures import SUFFIXES
from .split import ALL, SPLITS, Joined, Split, check_split
from .store import Store
from .table import Samples, Table, labels_of, relative

PICTURES = Samples("images", "PNG, JPEG or TIFF", lambda path: path.suffix.lower() in SUFFIXES and path.is_file())


def load(
    path: Path,
    split: str,
    size: int | None = None,
    fold: int = 0,
    folds: int | None = None,
    *,
    labels: Path | None = None,
    kind: str | None = None,
) -> Split:
    """A split: images (B, C, H, W), uint8, uint16 or float32 as stored, C = 1 where all are grey, targets as listed.

    Folders without train, valid and test are split 70/15/15 within each class, or into
    `folds` parts of which `fold` is for testing; exact copies stay together; split "all" is every image. With
    `size`, images are scaled to that shorter side and cut to a centred square; without, all must have one size.
    A table `labels` says of which class, tags or numbers images are, if wanted in which split and group. Decoded once
    and kept.
    """
    path, problems = Path(path), list[str]()
    if size is not None and size < 1:
        raise ValueError(f"size {size} must be at least 1 pixel")
    folder, given = path, labels is None and has_splits(path)
    if labels is not None:
        table = labels_of(Path(labels), path, kind, PICTURES)
        names = [relative(file, path) for file in table.files]
    elif given and split == ALL:
        return Joined({name: load(path, name, size) for name in SPLITS})
    else:
        folder = split_folder(path, check_split(split)) if given else path
        table, problems = list_classes(folder, PICTURES, 1 if split == ALL else FEWEST)
        names = [f"{file.parent.name}/{file.name}" for file in table.files]
    try:
        images = decoded(folder, table.files, names, size)
    except DataError as error:  # one report of all that is wrong
        raise DataError([*problems, *error.problems]) from error
    if problems:
        raise DataError(problems)
    if given:
        check_same_classes(folder, table, list_classes(split_folder(path, "train"), PICTURES)[0])
    rows = table.rows_of(ALL if given else split, names, images.marks, fold, folds)
    return Split(
        images, table.targets[rows], table.names, rows=rows, channels_last=True, names=names,
        dealt=table.splits is None and not given, kind=table.kind, notes=[*table.notes, *_shown(images, table, path)],
    )  # fmt: skip


def load_points(path: Path, labels: Path, split: str, *, fold: int = 0, folds: int | None = None) -> Split:
    """A split of images with points: targets (B, L, 2) in pixels, from columns NAME_row and NAME_column."""
    found = load(path, split, fold=fold, folds=folds, labels=labels, kind="numbers")
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


def _shown(images: Store, table: Table, path: Path) -> list[str]:
    """A remark on the images that are not opaque everywhere."""
    found = [table.files[row] for row in np.flatnonzero(images.index["transparent"])]
    names = ", ".join(relative(file, path) for file in found[:NAMED]) + ", …" * (len(found) > NAMED)
    count = "1 image has" if len(found) == 1 else f"{len(found)} images have"
    return [f"{count} transparent parts, which are shown on white: {names}"] * bool(found)
