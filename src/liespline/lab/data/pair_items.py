"""Images with masks, each read and checked once, with one report of all that is wrong, and kept decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from .arrays import Array
from .files import DataError
from .pair_files import CLASSES, IGNORED, MOST_VALUES, Pair, read_classes, read_image, read_mask
from .samples import IGNORE, as_float
from .scans import Reading, Scan
from .spool import Spool
from .store import Item, cache_folder, fingerprint

PLACES = 256  # remembered voxels per image and class, to draw patches around


@dataclass
class Found:
    """What the files of a set hold, and what is wrong with them."""

    scans: list[tuple[Scan, Callable[[], Array], Callable[[], Array]]] = field(default_factory=list)
    """Each image without its values, and what reads these and its mask again."""
    holders: dict[int, list[Pair]] = field(default_factory=dict)
    """By value of a mask, where it is."""
    known: set[int] = field(default_factory=set)
    """The values of training masks."""
    spacings: list[tuple[float, ...]] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    """What is wrong with masks by themselves."""
    others: list[str] = field(default_factory=list)
    """What is wrong with images, or with masks beside their images."""


def read_pairs(path: Path, pairs: Sequence[Pair], splits: Sequence[str], spool: Spool) -> Found:
    """Read every image and every mask, once."""
    found, stated = Found(), (path / CLASSES).exists()
    kinds: dict[tuple[int, int], list[Pair]] = {}
    for pair, split in zip(pairs, splits, strict=True):
        image = mask = None
        try:
            image = read_image(pair.image)
        except DataError as error:
            found.others += error.problems
        try:
            mask = read_mask(pair.mask)
            values = _values(pair, mask, stated)
        except DataError as error:
            found.masks += error.problems
        else:
            found.spacings.append(mask.spacing)
            found.known |= set(values) if split in ("", "train") else set()
            for value in values:
                found.holders.setdefault(value, []).append(pair)
        if image is None or mask is None:
            continue
        if problem := _misfit(pair, image, mask):
            found.others.append(problem)
        else:
            kinds.setdefault((len(image.values), image.values.ndim - 1), []).append(pair)
            aside = spool.put(image.values), spool.put(_compact(mask.values[0]))
            found.scans.append((replace(image, values=np.empty(0)), *aside))
    usual = max(kinds, key=lambda kind: len(kinds[kind]), default=None)
    found.others += [
        f"{alike[0].image}: has {_kind(kind)} where {len(kinds[usual])} images have {_kind(usual)}"
        for kind, alike in kinds.items()
        if usual is not None and kind != usual
    ]
    return found


def _compact(values: Array) -> Array:
    """Whole numbers in as few bytes as they need."""
    low, high = (np.min_scalar_type(int(end)) for end in (values.min(), values.max()))
    return values.astype(np.result_type(low, high))


def _values(pair: Pair, mask: Scan, stated: bool) -> list[int]:
    values = [int(value) for value in np.unique(mask.values)]
    if len(values) > MOST_VALUES and not stated:
        raise DataError(
            f"{pair.mask}: has {len(values)} different values; a mask holds one number per class. JPEG and scaling "
            f"make others: save masks as PNG. If there are so many classes, list them in {CLASSES}"
        )
    return values


def _misfit(pair: Pair, image: Scan, mask: Scan) -> str | None:
    """Why a mask does not lie where its image does."""
    if image.values.shape[1:] != mask.values.shape[1:]:
        sizes = [size_words(scan.values.shape[1:]) for scan in (mask, image)]
        return f"{pair.mask}: is {sizes[0]} and its image {pair.image.name} is {sizes[1]}"
    if not image.same_place(mask):
        return f"{pair.mask}: lies in another place than its image {pair.image.name} (their affines differ)"
    return None


def _kind(kind: tuple[int, int]) -> str:
    return f"{kind[0]} channel{'s' * (kind[0] > 1)} in {kind[1]} dimensions"


def size_words(space: Sequence[int]) -> str:
    """Width by height for images, as people say it."""
    return "×".join(map(str, reversed(space) if len(space) == 2 else space))


def names_of(path: Path, found: Found) -> dict[int, str]:
    """Class names by value, from `classes.csv` or else from the training masks; DataError with all that is wrong."""
    problems, held = list(found.masks), found.holders
    try:
        stated = read_classes(path)
    except DataError as error:  # one report of all that is wrong
        raise DataError([*error.problems, *problems, *found.others]) from error
    known = sorted(held.keys() & found.known)
    names = stated or {value: "background" if value == 0 else str(value) for value in known}
    if not problems:
        where = f"{CLASSES} lists" if stated else "the training masks hold"
        for value in sorted(held.keys() - names.keys()):
            more = f" (and {len(held[value]) - 1} more)" if len(held[value]) > 1 else ""
            problems.append(f"{held[value][0].mask}{more}: has the value {value}; {where} {sorted(names)}")
        if len(names) - (IGNORED in names.values()) < 2:
            problems.append(f"{path}: all masks hold the one value {sorted(names)}; two or more are needed")
    if problems or found.others:
        raise DataError([*problems, *found.others])
    return names


def mask_items(
    path: Path, pairs: Sequence[Pair], splits: Sequence[str], reading: Reading, whole: dict[str, Array]
) -> Iterator[tuple[int, Item]]:
    """All images and masks, volumes of them on cubes of one side; classes are numbered in the order of their values."""
    with Spool(cache_folder(path)) as spool:
        found = read_pairs(path, pairs, splits, spool)
        names = names_of(path, found)
        volumes = [spacing for spacing in found.spacings if len(spacing) == 3]
        reading = reading.for_all(volumes) if volumes else replace(reading, side=None)
        values = [value for value, name in names.items() if name != IGNORED]
        whole |= {"classes": np.array([names[value] for value in values]), "values": np.array(values)}
        whole["side"] = np.array(reading.side or 0.0)
        for row, (scan, samples, numbers) in enumerate(found.scans):
            yield row, _item(replace(scan, values=samples()), numbers(), values, reading, row + 1)


def _item(image: Scan, mask: Array, values: Sequence[int], reading: Reading, seed: int) -> Item:
    classes = np.full(mask.shape, IGNORE, np.uint8)
    for number, value in enumerate(values):
        classes[mask == value] = number
    samples, own = image.values, np.zeros((0,) * mask.ndim, np.uint8)
    if mask.ndim == 3:
        own = classes if reading.resamples(image.spacing) else own
        samples, classes = reading.samples(image), reading.on_cubes(image, classes[None], nearest=True)[0]
    places, counts = _places(classes, len(values), seed)
    label = fingerprint(classes.astype(np.int64))
    seen = Item.of(
        as_float(torch.tensor(samples)).numpy(), label=label, spacing=image.spacing, places=places, counts=counts
    )
    return Item({"image": samples, "mask": classes, "own": own}, seen.about)


def _places(mask: Array, classes: int, seed: int) -> tuple[Array, Array]:
    places = np.full((classes, PLACES), -1, np.int64)
    flat = mask.ravel()
    for number in range(classes):
        at = np.flatnonzero(flat == number)
        chosen = np.random.default_rng([seed, number]).permutation(len(at))[:PLACES]
        places[number, : len(chosen)] = at[chosen]
    return places, np.bincount(flat[flat < classes], minlength=classes)
