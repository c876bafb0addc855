"""A user's own images: one folder per class, such folders in train, valid and test, or any folder with a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .files import DataError, some
from .image_store import decoded
from .listing import Samples
from .pictures import SUFFIXES
from .split import ALL, Split
from .store import Store
from .table import listed

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
    path = Path(path)
    if size is not None and size < 1:
        raise ValueError(f"size {size} must be at least 1 pixel")
    found, problems = listed(path, split, PICTURES, labels, kind)
    images, names = decoded(path, found, size, problems), found.names
    if labels is None and found.splits and split != ALL:
        names = [name.partition("/")[2] for name in names]  # which split they are of is known
    rows = found.rows_of(split, images.marks, fold, folds)
    return Split(
        images, found.targets[rows], found.labels, rows=rows, channels_last=True, names=names,
        dealt=found.splits is None, kind=found.kind, notes=[*found.notes, *_shown(images, found.names)],
    )  # fmt: skip


def load_points(path: Path, labels: Path, split: str, *, fold: int = 0, folds: int | None = None) -> Split:
    """A split of images with points: targets (B, L, 2) in pixels, from columns NAME_row and NAME_column."""
    found = load(path, split, fold=fold, folds=folds, labels=labels, kind="numbers")
    names = tuple(name.removesuffix("_row") for name in found.classes if name.endswith("_row"))
    wanted = [f"{name}_{axis}" for name in names for axis in ("row", "column")]
    if not names or sorted(wanted) != sorted(found.classes):
        columns = ", ".join(found.classes)
        raise DataError(f"{labels}: has columns {columns}; a point is two, such as eye_row and eye_column")
    places = [found.classes.index(name) for name in wanted]
    found.targets = found.targets[:, places].unflatten(1, (len(names), 2))
    found.classes, found.kind = names, "points"
    inside = ((found.targets > -1) & (found.targets < found.targets.new_tensor(found.space))).flatten(1).all(1)
    if not inside.all():
        outside = [name for name, good in zip(found.names, inside, strict=True) if not good]
        size = "×".join(map(str, reversed(found.space)))
        raise DataError([f"{labels}: {name} has a point outside the image of {size}" for name in outside])
    return found


def _shown(images: Store, names: Sequence[str]) -> list[str]:
    """Remarks on grey images among coloured ones, and on images that are not opaque everywhere."""
    notes, grey = [], int(images.index["grey"].sum())
    if images.shape[-1] == 3 and grey:
        notes.append(f"{grey:,} of {len(images):,} images are grey, the others coloured: the grey ones become colours")
    if clear := [name for name, some_clear in zip(names, images.index["transparent"], strict=True) if some_clear]:
        count = "1 image has" if len(clear) == 1 else f"{len(clear)} images have"
        notes.append(f"{count} transparent parts, which are shown on white: {some(clear)}")
    return notes
