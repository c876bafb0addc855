"""Images with masks as users have them: found by name, each read and checked once, and kept decoded."""

import csv
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from .arrays import Array
from .channels import ORIENTATION
from .files import DataError, collected, size_words
from .listing import visible
from .pictures import SUFFIXES, picture, read_array
from .samples import IGNORE, as_float
from .scans import Reading, Scan
from .scans.read import is_scan, read_scan, stem
from .store import Item, aside, cache_folder, fingerprint

MASKS = ("masks", "labels")
CLASSES = "classes.csv"
IGNORED = "ignore"
MOST_VALUES = 32
PLACES = 256  # remembered voxels per image and class, to draw patches around


class Pair(NamedTuple):
    """An image and its mask, by the name that they share, and the split whose folder they are in."""

    name: str
    image: Path
    mask: Path
    split: str = ""


def find_pairs(folders: Mapping[str, Path]) -> tuple[list[Pair], list[str], list[str]]:
    """The pairs of each split's folder in the order of their names, every file without its partner, and remarks."""
    pairs: list[Pair] = []
    problems: list[str] = []
    others: list[Path] = []
    for split, folder in folders.items():
        masks = next((folder / name for name in MASKS if (folder / name).is_dir()), folder / MASKS[0])
        images, masked = (by_stem(part, problems, others) for part in (folder / "images", masks))
        lone = [name for name in images if name not in masked]
        problems += [f"{images[name]}: has no mask {masks.name}/{name}.*" for name in lone]
        problems += [f"{path}: has no image images/{name}.*" for name, path in masked.items() if name not in images]
        both = sorted(images.keys() & masked.keys())
        pairs += [Pair(f"{split}/{name}" if split else name, images[name], masked[name], split) for name in both]
        if not images and not problems:
            problems.append(f"{folder}/images: has no PNG, TIFF, NIfTI or NumPy files and no folders of DICOM slices")
    notes = [f"{len(others)} entries are no images or volumes and are left out: {others[0].name}"] if others else []
    return pairs, problems, notes


def by_stem(folder: Path, problems: list[str], others: list[Path]) -> dict[str, Path]:
    """The images or masks in a folder by their names; of two with one name, the second is a problem."""
    if not folder.is_dir():
        raise DataError(f"{folder}: is no folder; expected folders images and masks with files of equal names")
    found: dict[str, Path] = {}
    for entry in visible(folder):
        if not (is_scan(entry) or (entry.is_file() and entry.suffix.lower() in SUFFIXES)):
            others.append(entry)
        elif (name := stem(entry)) in found:
            problems.append(f"{entry}: {found[name].name} has the same name; one image has one mask")
        else:
            found[name] = entry
    return found


def read_image(path: Path) -> Scan:
    """An image (C, H, W) with square pixels, or a volume (C, X, Y, Z) with the spacing that it states."""
    if is_scan(path):
        return read_scan(path)
    pixels = read_array(path)
    return Scan(pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0), (1.0, 1.0))


def read_mask(path: Path) -> Scan:
    """The whole numbers of a mask (1, *space); a palette's colours do not matter, its numbers do."""
    scan = read_scan(path) if is_scan(path) else Scan(_flat(path)[None], (1.0, 1.0))
    if len(scan.values) != 1:
        raise DataError(f"{path}: has {len(scan.values)} channels; a mask has one number per pixel")
    if scan.values.dtype.kind == "f" and (scan.values != np.rint(scan.values)).any():
        raise DataError(f"{path}: has values between whole numbers; a mask holds the number of a class per voxel")
    whole = scan.values.astype(np.int64) if scan.values.dtype.kind == "f" else scan.values
    return Scan(whole, scan.spacing, scan.stored, scan.shape)


def _flat(path: Path) -> Array:
    with picture(path) as image:
        if getattr(image, "n_frames", 1) > 1:
            raise DataError(f"{path}: holds several pages; a mask is one")
        if int(image.getexif().get(ORIENTATION, 1)) != 1:  # its image is brought upright, the numbers of a mask are not
            raise DataError(f"{path}: is stored on its side (orientation tag); save it upright")
        values = np.asarray(image)  # not converted: a palette image stays the numbers it holds
    if values.ndim == 3:
        if (values[..., :1] != values[..., : min(3, values.shape[2])]).any():
            raise DataError(f"{path}: is coloured; a mask has one number per pixel: save it as grey or with a palette")
        values = values[..., 0]
    return values.astype(np.uint8) if values.dtype == bool else values


def read_classes(folder: Path) -> dict[int, str] | None:
    """Names by value from `classes.csv` (columns value and name) beside the images; None without one."""
    path = folder / CLASSES
    if not path.exists():
        return None
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            rows = list(csv.DictReader(stream, strict=True))
        names = {int(row["value"]): row["name"].strip() for row in rows}
    except (ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        raise DataError(f"{path}: is no table of classes ({error}); expected columns value and name") from error
    if len(names) != len(rows) or len(set(names.values())) != len(rows) or "" in names.values() or len(rows) < 2:
        raise DataError(f"{path}: needs two or more rows, each value and each name once")
    return names


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


def _item(image: Scan, mask: Array, values: Sequence[int], reading: Reading, seed: int) -> Item:
    classes = numbered(mask, values)
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


def numbered(mask: Array, values: Sequence[int]) -> Array:
    """The class number of each sample; IGNORE where its value is that of none."""
    classes = np.full(mask.shape, IGNORE, np.uint8)
    for number, value in enumerate(values):
        classes[mask == value] = number
    return classes


def _places(mask: Array, classes: int, seed: int) -> tuple[Array, Array]:
    places = np.full((classes, PLACES), -1, np.int64)
    flat = mask.ravel()
    for number in range(classes):
        at = np.flatnonzero(flat == number)
        chosen = np.random.default_rng([seed, number]).permutation(len(at))[:PLACES]
        places[number, : len(chosen)] = at[chosen]
    return places, np.bincount(flat[flat < classes], minlength=classes)
