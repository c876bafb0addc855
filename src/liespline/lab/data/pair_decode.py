"""Every image and every mask read and checked as one set, with one report of all that is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .files import DataError
from .pair_files import CLASSES, IGNORED, MOST_VALUES, Pair, read_classes, read_image, read_mask
from .ragged import IGNORE, Item
from .rows import Array
from .scans import Reading, Scan


@dataclass(frozen=True)
class Meaning:
    """What the masks of a set mean: class names by value, and the side of the cubes that its voxels become."""

    names: dict[int, str]
    side: float | None

    @property
    def classes(self) -> list[str]:
        """The classes that are learned, in the order of their values."""
        return [name for name in self.names.values() if name != IGNORED]

    @property
    def values(self) -> list[int]:
        """The value that masks hold for each of the classes."""
        return [value for value, name in self.names.items() if name != IGNORED]

    @property
    def numbers(self) -> dict[int, int]:
        """Class numbers by value."""
        return {v: IGNORE if name == IGNORED else self.classes.index(name) for v, name in self.names.items()}


def meaning_of(path: Path, pairs: Sequence[Pair], splits: Sequence[str], reading: Reading) -> Meaning:
    """Class names by value, from `classes.csv` or else from the masks to learn from; DataError for all other values."""
    stated, problems = read_classes(path), []
    seen: dict[int, list[Pair]] = {}
    spacings: list[tuple[float, ...]] = []
    known: Counter[int] = Counter()
    for pair, split in zip(pairs, splits, strict=True):
        try:
            mask = read_mask(pair.mask)
            values = [int(value) for value in np.unique(mask.values)]
        except DataError as error:
            problems += error.problems
            continue
        if len(values) > MOST_VALUES and stated is None:
            problems.append(
                f"{pair.mask}: has {len(values)} different values; a mask holds one number per class. JPEG and scaling "
                f"make others: save masks as PNG. If there are so many classes, list them in {CLASSES}"
            )
            continue
        spacings.append(mask.spacing)
        for value in values:
            seen.setdefault(value, []).append(pair)
            known[value] += split in ("", "train")
    if not problems:
        names = stated or {value: "background" if value == 0 else str(value) for value in sorted(seen) if known[value]}
        unknown = [value for value in sorted(seen) if value not in names]
        where = f"{CLASSES} lists" if stated else "the training masks hold"
        for value in unknown:
            first, others = seen[value][0], len(seen[value]) - 1
            more = f" (and {others} more)" if others else ""
            problems.append(f"{first.mask}{more}: has the value {value}; {where} {sorted(names)}")
        if len(names) - (IGNORED in names.values()) < 2:
            problems.append(f"{path}: all masks hold the one value {sorted(names)}; two or more are needed")
    if problems:
        raise DataError(problems)
    volumes = [spacing for spacing in spacings if len(spacing) == 3]
    return Meaning(names, reading.for_all(volumes).side if volumes else None)


def decode(pairs: Sequence[Pair], meaning: Meaning, reading: Reading) -> Iterator[Item]:
    """Every pair as it is stored; after the last one, DataError with all that cannot be used."""
    reading, problems = Reading(reading.window, meaning.side), []
    kinds: Counter[tuple[int, int]] = Counter()
    examples: dict[tuple[int, int], Pair] = {}
    for pair in pairs:
        try:
            image, mask = _read(pair)
        except DataError as error:
            problems += error.problems
            continue
        kind = (len(image.values), image.values.ndim - 1)
        kinds[kind] += 1
        examples.setdefault(kind, pair)
        yield _item(image, mask.values[0], meaning, reading)
    if len(kinds) > 1:
        usual, count = kinds.most_common(1)[0]
        for kind, pair in examples.items():
            if kind != usual:
                problems.append(f"{pair.image}: has {_kind(kind)} where {count} images have {_kind(usual)}")
    if problems:
        raise DataError(problems)


def _kind(kind: tuple[int, int]) -> str:
    return f"{kind[0]} channel{'s' * (kind[0] > 1)} in {kind[1]} dimensions"


def unfit(pairs: Sequence[Pair]) -> list[str]:
    """What is wrong with the pairs one by one."""
    problems = []
    for pair in pairs:
        try:
            _read(pair)
        except DataError as error:
            problems += error.problems
    return problems


def _read(pair: Pair) -> tuple[Scan, Scan]:
    """An image and its mask, which lies where the image does."""
    image, mask = read_image(pair.image), read_mask(pair.mask)
    if image.values.shape[1:] != mask.values.shape[1:]:
        sizes = [size_words(scan.values.shape[1:]) for scan in (mask, image)]
        raise DataError(f"{pair.mask}: is {sizes[0]} and its image {pair.image.name} is {sizes[1]}")
    if not image.same_place(mask):
        raise DataError(f"{pair.mask}: lies in another place than its image {pair.image.name} (their affines differ)")
    return image, mask


def size_words(space: Sequence[int]) -> str:
    """Width by height for images, as people say it."""
    return "×".join(map(str, reversed(space) if len(space) == 2 else space))


def _item(image: Scan, mask: Array, meaning: Meaning, reading: Reading) -> Item:
    classes = np.full(mask.shape, IGNORE, np.uint8)
    for value, number in meaning.numbers.items():
        classes[mask == value] = number
    if image.values.ndim == 3:
        return Item(image.values, classes, spacing=image.spacing)
    own = classes if reading.resamples(image.spacing) else None
    return Item(reading.samples(image), reading.on_cubes(image, classes[None], nearest=True)[0], own, image.spacing)
