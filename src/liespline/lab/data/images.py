"""A user's own images: one folder per class, or such folders inside train, valid and test."""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .class_folders import FEWEST, Listing, Samples, has_splits, list_classes, some, split_folder, split_folders
from .files import DataError
from .folds import dealt_rows
from .pictures import SUFFIXES, has_transparency, read_array, strict_pillow
from .rows import Array, Decoded, cached_rows, file_key, marks_of
from .split import ALL, SPLITS, Joined, Split, check_split

PICTURES = Samples("images", "PNG, JPEG or TIFF", lambda path: path.suffix.lower() in SUFFIXES and path.is_file())
_BLOCK = 64
Kind = tuple[tuple[int, int], int, np.dtype[Any]]


def check(path: Path, size: int | None = None) -> list[str]:
    """Every problem that would stop training on the folder; reads all images and keeps them decoded."""
    path, problems = Path(path), []
    for split in SPLITS if has_splits(path) else ("train",):
        try:
            load(path, split, size)
        except DataError as error:
            problems += [*error.problems, *_unreadable(path, split, size)]
    return list(dict.fromkeys(problems))


def _unreadable(path: Path, split: str, size: int | None) -> list[str]:
    """The files that cannot be read, also where a class has too few of them."""
    try:
        listing = list_classes(split_folder(path, split) if has_splits(path) else path, PICTURES, 0)
    except DataError:
        return []
    with strict_pillow(), ThreadPoolExecutor() as pool:
        return [kind for kind in pool.map(lambda file: _kind(file, size), listing.files) if isinstance(kind, str)]


def load(path: Path, split: str, size: int | None = None, fold: int = 0, folds: int | None = None) -> Split:
    """A split: images (B, C, H, W), uint8, uint16 or float32 as stored, C = 1 where all are grey, targets (B,).

    Folders without train, valid and test are split 70/15/15 within each class, or into
    `folds` parts of which `fold` is for testing; exact copies stay together; split "all" is every image. With
    `size`, images are scaled to that shorter side and cut to a centred square; without, all must have one size.
    Decoded once and kept.
    """
    path = Path(path)
    if size is not None and size < 1:
        raise ValueError(f"size {size} must be at least 1 pixel")
    given = has_splits(path)
    if split == ALL and given:
        return Joined({name: load(path, name, size) for name in SPLITS})
    folder = split_folder(path, check_split(split)) if given else None
    listing = list_classes(folder or path, PICTURES, 1 if split == ALL else FEWEST)
    if folder is not None and listing.classes != (known := list_classes(split_folder(path, "train"), PICTURES).classes):
        raise DataError(f"{folder}: has classes {listing.classes}; train has {known}: both must be the same")
    key = "\n".join(f"{file.parent.name}/{file_key(file)}" for file in listing.files) + f"\n{size}"
    images = cached_rows(folder or path, key, lambda: decode(listing, size))
    names = [f"{file.parent.name}/{file.name}" for file in listing.files]
    rows = np.arange(len(listing.files))
    if not folder and split != ALL:
        rows = dealt_rows(names, listing.labels, marks_of(images), split, fold, folds)
    return Split(
        images, listing.labels[rows], listing.classes, rows=rows, channels_last=len(images.shape) == 3,
        notes=listing.notes, names=names, dealt=not given,
    )  # fmt: skip


def transparent(path: Path) -> list[str]:
    """A remark on the images that are not opaque everywhere."""
    path = Path(path)
    files = [file for folder in split_folders(path) for file in list_classes(folder, PICTURES).files]
    with strict_pillow(), ThreadPoolExecutor() as pool:
        found = [file for file, seen in zip(files, pool.map(has_transparency, files), strict=True) if seen]
    images = "1 image has" if len(found) == 1 else f"{len(found)} images have"
    return [f"{images} transparent parts, which are shown on white: {some(found, path)}"] * bool(found)


def decode(listing: Listing, size: int | None) -> Decoded:
    """All images in one shape and dtype; raises DataError naming each file that does not fit."""
    with strict_pillow(), ThreadPoolExecutor() as pool:
        kinds = list(pool.map(lambda file: _kind(file, size), listing.files))
    problems = [kind for kind in kinds if isinstance(kind, str)]
    good = [kind for kind in kinds if not isinstance(kind, str)]
    usual, count = Counter(kind[0] for kind in good).most_common(1)[0] if good else ((0, 0), 0)
    for file, kind in zip(listing.files, kinds, strict=True):
        if not isinstance(kind, str) and kind[0] != usual:
            problems.append(
                f"{file}: is {kind[0][1]}×{kind[0][0]} where {count} images are {usual[1]}×{usual[0]}; "
                "resize it, or choose a common size with --size"
            )
    problems += _unlike(listing.files, kinds)
    if problems:
        raise DataError(problems)
    channels = max((kind[1] for kind in good), default=1)
    dtype = np.result_type(np.uint8, *(kind[2] for kind in good))
    shape = (len(listing.files), *usual, *(() if channels == 1 else (channels,)))

    def blocks() -> Iterator[Array]:
        with strict_pillow(), ThreadPoolExecutor() as pool:
            for start in range(0, len(listing.files), _BLOCK):
                files = listing.files[start : start + _BLOCK]
                yield np.stack(list(pool.map(lambda file: _uniform(file, size, shape[1:], dtype), files)))

    return shape, dtype, blocks()


def _unlike(files: Sequence[Path], kinds: Sequence[Kind | str]) -> list[str]:
    """Which files have other channels or other numbers than most: only grey goes with RGB, and 8 with 16 bits."""

    def alike(kind: Kind) -> tuple[int, str]:
        return 3 if kind[1] == 1 else kind[1], kind[2].kind

    good = [kind for kind in kinds if not isinstance(kind, str)]
    if not good:
        return []
    usual, count = Counter(map(alike, good)).most_common(1)[0]
    words = _words(next(kind for kind in good if alike(kind) == usual))
    return [
        f"{file}: has {_words(kind)} where {count} images have {words}; save all alike"
        for file, kind in zip(files, kinds, strict=True)
        if not isinstance(kind, str) and alike(kind) != usual
    ]


def _words(kind: Kind) -> str:
    return f"{kind[1]} channel{'s' * (kind[1] > 1)} of {kind[2]}"


def _kind(file: Path, size: int | None) -> Kind | str:
    """((height, width) it will have, channels, dtype), or what is wrong with the file."""
    try:
        array = read_array(file)
    except DataError as error:
        return error.problems[0]
    height, width = array.shape[:2]
    return ((size, size) if size else (height, width)), (1, *array.shape[2:])[-1], array.dtype


def _uniform(file: Path, size: int | None, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """The image with the set's shape and dtype: grey among RGB is repeated, 8 bit among 16 bit stretched."""
    array = read_array(file)
    if dtype == np.uint16:
        array = in_16_bits(array)
    if len(shape) == 3 and array.ndim == 2:
        array = np.repeat(array[..., None], shape[2], axis=-1)
    return array if size is None else scaled(array, (size, size))


def in_16_bits(array: Array) -> Array:
    """An image among those of 16 bits: of one with 8 bits, 255 becomes 65,535."""
    return array.astype(np.uint16) * 257 if array.dtype == np.uint8 else array


def scaling(size: int) -> dict[str, Any]:
    """What `scaled` does, for other programs: by the filter of Pillow's BICUBIC, in floats."""
    how = {
        "filter": "bicubic",
        "a": -0.5,
        "antialias": True,
        "rounded": "to whole numbers, half to even, and cut to 0 to largest",
    }
    sides = {"shorter_side": size, "longer_side": "round(own · shorter_side / shorter own)"}
    return {"resize": sides | how, "crop": "the middle, (own − shorter_side) // 2 pixels cut before"}


def scaled(array: Array, space: tuple[int, int]) -> Array:
    """Scaled until it just covers (height, width), smoothed where it shrinks, then the centre of that size cut out."""
    planes = torch.from_numpy(array.astype(np.float32).reshape(*array.shape[:2], -1)).permute(2, 0, 1)
    scale = max(wanted / own for wanted, own in zip(space, array.shape[:2], strict=True))
    target = [max(wanted, round(own * scale)) for wanted, own in zip(space, array.shape[:2], strict=True)]
    whole = torch.nn.functional.interpolate(planes.unsqueeze(0), target, mode="bicubic", antialias=True)[0]
    top, left = ((own - wanted) // 2 for own, wanted in zip(target, space, strict=True))
    cut: Array = whole[:, top : top + space[0], left : left + space[1]].permute(1, 2, 0).numpy()
    if array.dtype.kind != "f":
        cut = np.clip(np.rint(cut), 0, np.iinfo(array.dtype).max).astype(array.dtype)
    return cut.reshape(*space, *array.shape[2:])
