"""Images with masks as users have them: folders `images` and `masks` with equal names."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .arrays import Array
from .channels import ORIENTATION
from .files import DataError
from .listing import visible
from .pictures import SUFFIXES, picture, read_array
from .scans import Scan
from .scans.read import is_scan, read_scan, stem

MASKS = ("masks", "labels")
CLASSES = "classes.csv"


@dataclass(frozen=True)
class Pair:
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
        images, masked = (_by_stem(part, problems, others) for part in (folder / "images", masks))
        lone = [name for name in images if name not in masked]
        problems += [f"{images[name]}: has no mask {masks.name}/{name}.*" for name in lone]
        problems += [f"{path}: has no image images/{name}.*" for name, path in masked.items() if name not in images]
        both = sorted(images.keys() & masked.keys())
        pairs += [Pair(f"{split}/{name}" if split else name, images[name], masked[name], split) for name in both]
        if not images and not problems:
            problems.append(f"{folder}/images: has no PNG, TIFF, NIfTI or NumPy files and no folders of DICOM slices")
    notes = [f"{len(others)} entries are no images or volumes and are left out: {others[0].name}"] if others else []
    return pairs, problems, notes


def _by_stem(folder: Path, problems: list[str], others: list[Path]) -> dict[str, Path]:
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
