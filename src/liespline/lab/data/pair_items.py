"""Images with masks, each read and checked once, with one report of all that is wrong, and kept decoded."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from .arrays import Array
from .files import DataError, collected
from .pair_files import CLASSES, Pair, read_classes, read_image, read_mask
from .samples import IGNORE, as_float
from .scans import Reading, Scan
from .store import Item, aside, cache_folder, fingerprint

IGNORED = "ignore"
MOST_VALUES = 32
PLACES = 256  # remembered voxels per image and class, to draw patches around


def mask_items(
    path: Path, pairs: Sequence[Pair], reading: Reading, whole: dict[str, Array]
) -> Iterator[tuple[int, Item]]:
    """All images and masks, volumes of them on cubes of one side; classes are numbered in the order of their values."""
    problems: list[str] = []
    stated: dict[int, str] | None = None
    images: dict[Pair, Scan] = {}
    masks: dict[Pair, Scan] = {}
    held: dict[Pair, list[int]] = {}
    with collected(problems):
        stated = read_classes(path)
    with tempfile.TemporaryFile(dir=cache_folder(path)) as waiting:
        for pair in pairs:
            with collected(problems):
                image = read_image(pair.image)
                images[pair] = replace(image, values=aside(waiting, image.values))
            with collected(problems):
                mask = read_mask(pair.mask)
                held[pair] = _values(pair, mask, (path / CLASSES).exists())
                masks[pair] = replace(mask, values=aside(waiting, mask.values))
        names = stated or _names(held)
        if len(held) == len(pairs):  # else not all values are known
            problems += _unknown(path, held, names, stated is not None)
        both = [pair for pair in pairs if pair in images and pair in masks]
        problems += [text for pair in both if (text := _misfit(pair, images[pair], masks[pair])) is not None]
        problems += _unlike(images)
        if problems:
            raise DataError(problems)
        volumes = [image.spacing for image in images.values() if len(image.spacing) == 3]
        reading = reading.for_all(volumes) if volumes else replace(reading, side=None)
        values = [value for value, name in names.items() if name != IGNORED]
        whole |= {"classes": np.array([names[value] for value in values]), "values": np.array(values)}
        whole["side"] = np.array(reading.side or 0.0)
        for row, pair in enumerate(pairs):
            yield row, _item(images[pair], masks[pair].values[0], values, reading, row + 1)


def _values(pair: Pair, mask: Scan, stated: bool) -> list[int]:
    values = [int(value) for value in np.unique(mask.values)]
    if len(values) > MOST_VALUES and not stated:
        raise DataError(
            f"{pair.mask}: has {len(values)} different values; a mask holds one number per class. JPEG and scaling "
            f"make others: save masks as PNG. If there are so many classes, list them in {CLASSES}"
        )
    return values


def _names(held: Mapping[Pair, Sequence[int]]) -> dict[int, str]:
    """Class names by value, of all that training masks hold."""
    known = sorted({value for pair, values in held.items() if pair.split in ("", "train") for value in values})
    return {value: "background" if value == 0 else str(value) for value in known}


def _unknown(path: Path, held: Mapping[Pair, Sequence[int]], names: Mapping[int, str], stated: bool) -> list[str]:
    """Which masks hold what is no class."""
    where = f"{CLASSES} lists" if stated else "the training masks hold"
    problems = [
        f"{pair.mask}: has the value {value}; {where} {sorted(names)}"
        for pair, values in held.items()
        for value in values
        if value not in names
    ]
    if len(names) - (IGNORED in names.values()) < 2:
        problems.append(f"{path}: all masks hold the one value {sorted(names)}; two or more are needed")
    return problems


def _misfit(pair: Pair, image: Scan, mask: Scan) -> str | None:
    """Why a mask does not lie where its image does."""
    if image.values.shape[1:] != mask.values.shape[1:]:
        sizes = [size_words(scan.values.shape[1:]) for scan in (mask, image)]
        return f"{pair.mask}: is {sizes[0]} and its image {pair.image.name} is {sizes[1]}"
    if not image.same_place(mask):
        return f"{pair.mask}: lies in another place than its image {pair.image.name} (their affines differ)"
    return None


def _unlike(images: Mapping[Pair, Scan]) -> list[str]:
    """Which images have other channels or dimensions than most."""
    kinds = {
        pair: f"{len(image.values)} channel{'s' * (len(image.values) > 1)} in {image.values.ndim - 1} dimensions"
        for pair, image in images.items()
    }
    usual, count = max(Counter(kinds.values()).items(), key=lambda kind: kind[1], default=("", 0))
    return [
        f"{pair.image}: has {kind} where {count} images have {usual}" for pair, kind in kinds.items() if kind != usual
    ]


def size_words(space: Sequence[int]) -> str:
    """Width by height for images, as people say it."""
    return "×".join(map(str, reversed(space) if len(space) == 2 else space))


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
