"""One's own images: one folder per class, such folders in train, valid and test, or any folder with a table."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from ..data.arrays import Array
from ..data.files import DataError, collected, size_words, some
from ..data.listing import Samples, list_classes
from ..data.pictures import SUFFIXES, in_16_bits, read_picture, scaled, strict_pillow
from ..data.split import ALL, Split
from ..data.store import Item, Store, stored
from ..data.table import labels_of
from ..settings import Config, ConfigError, written
from .base import Task, splits_of_table, table_and_fold
from .defaults import DEFAULTS, OPTIONS

PICTURES = Samples("images", "PNG, JPEG or TIFF", lambda path: path.suffix.lower() in SUFFIXES and path.is_file())
_BLOCK = 64
"""Images that are decoded together."""


class Kind(NamedTuple):
    """What all images of a set must be alike in."""

    space: tuple[int, int]
    channels: int
    dtype: str

    @classmethod
    def of(cls, image: Array) -> Self:
        """The kind of an image (H, W, C)."""
        return cls((image.shape[0], image.shape[1]), image.shape[2], image.dtype.name)

    @property
    def alike(self) -> tuple[int, str]:
        """Only grey goes with RGB, and 8 with 16 bits."""
        return 3 if self.channels == 1 else self.channels, np.dtype(self.dtype).kind

    def __str__(self) -> str:
        return f"{self.channels} channel{'s' * (self.channels > 1)} of {self.dtype}"


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
    found = list_classes(path, PICTURES, split) if labels is None else labels_of(labels, path, PICTURES, kind)
    names = found.names
    images = stored(path, f"{found.key}\n{size}", lambda whole: _items(found.files, size), found.problems)
    if labels is None and found.splits and split != ALL:
        names = [name.partition("/")[2] for name in names]  # which split they are of is known
    rows = found.rows_of(split, images.index["mark"], fold, folds)
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
        size = size_words(found.space)
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


def _items(files: Sequence[Path], size: int | None) -> Iterator[tuple[int, Item]]:
    """Each image as its file has it; then those again that other files make more of: colours, or 16 bits."""
    kinds: dict[Path, Kind] = {}
    problems: list[str] = []
    with strict_pillow(), ThreadPoolExecutor() as pool:
        for start in range(0, len(files), _BLOCK):
            block = files[start : start + _BLOCK]
            for row, reading in enumerate([pool.submit(_item, file, size) for file in block], start):
                with collected(problems):
                    item = reading.result()
                    kinds[files[row]] = Kind.of(item.arrays["image"])
                    yield row, item
        problems += _unlike(kinds)
        if problems or not kinds:
            raise DataError(problems)
        channels = max(kind.channels for kind in kinds.values())
        dtype = np.result_type(*(kind.dtype for kind in kinds.values()))
        for row, file in enumerate(files):
            if kinds[file][1:] != (channels, dtype.name):
                yield row, _item(file, size, channels, dtype == np.uint16)


def _item(file: Path, size: int | None, channels: int = 1, deep: bool = False) -> Item:
    """An image, with so many channels at least, and in 16 bits if `deep`."""
    array, transparent = read_picture(file)
    grey = array.ndim == 2
    if deep:
        array = in_16_bits(array)
    if channels > 1 and grey:
        array = np.repeat(array[..., None], channels, axis=-1)
    if size is not None:
        array = scaled(array, (size, size))
    return Item.of(array if array.ndim == 3 else array[..., None], True, transparent=transparent, grey=grey)


def _unlike(kinds: Mapping[Path, Kind]) -> list[str]:
    """Which files have another size, other channels or other numbers than most."""
    if not kinds:
        return []
    usual, count = Counter(kind.space for kind in kinds.values()).most_common(1)[0]
    problems = [
        f"{file}: is {kind.space[1]}×{kind.space[0]} where {count} images are {usual[1]}×{usual[0]}; "
        "resize it, or choose a common size with --size"
        for file, kind in kinds.items()
        if kind.space != usual
    ]
    most, count = Counter(kind.alike for kind in kinds.values()).most_common(1)[0]
    words = next(str(kind) for kind in kinds.values() if kind.alike == most)
    return problems + [
        f"{file}: has {kind} where {count} images have {words}; save all alike"
        for file, kind in kinds.items()
        if kind.alike != most
    ]


def of_folder(config: Config, split: str) -> Split:
    if isinstance(config.size, tuple):
        raise ConfigError(f"size = {written(config.size)}: images become squares; give one number")
    return load(Path(str(config.data)), split, config.size, kind=config.label_type, **table_and_fold(config))


TASK = Task(
    defaults=DEFAULTS["images"],
    data_help="a folder with one folder of PNG, JPEG or TIFF files per class, or any folder with --labels",
    own=True,
    splits=splits_of_table,
    load_split=of_folder,
    options=OPTIONS["images"],
)
