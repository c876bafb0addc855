"""Masks of new images and volumes: file by file, large ones in tiles, each as its image lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tifffile
import torch
from PIL import Image
from torch import Tensor

from ..data import DataError, as_float
from ..data.files import NAMED, replaced
from ..data.large import open_windows
from ..data.large.slides import SLIDES
from ..data.pair_files import read_image
from ..data.pictures import SUFFIXES, strict_pillow
from ..data.rows import Array, digest, file_key
from ..data.scans import SCAN_FORMATS, Reading, is_scan, stem
from ..data.scans.nifti import write_nifti
from ..data.split import in_colours
from ..runs.trained import Trained, load, model_file
from ..tasks.networks import Signature
from ..whole import segmented, unlike_voxels
from .evaluate import best_device
from .finding import by_suffix, find_files
from .large import segment_large

IMAGES = (*SUFFIXES, *SLIDES)
WINDOWED = (".tif", ".tiff", *SLIDES)
KINDS = (np.uint8, np.uint16, np.int16, np.int32, np.int64)
Progress = Callable[[str, int, int], None]


@dataclass
class Masks:
    """What `predict_masks` wrote, `image` and `mask` of each, with remarks; and what is wrong with the other files."""

    rows: list[dict[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def predict_masks(
    checkpoint: Path,
    paths: Sequence[Path],
    out: Path,
    *,
    side: int | None = None,
    level: int = 0,
    progress: Progress = lambda name, done, total: None,
) -> Masks:
    """Write the mask of every image in files and folders to `out`; a file that cannot be used does not stop the others.

    A mask holds the values of the masks that the network learned from. PNG and JPEG become PNG, TIFF and slides tiled
    TIFF with their place in the world, volumes NIfTI on their own grid with the header they have. A large image that
    was stopped goes on where it was.
    """
    trained = load(checkpoint)
    trained.to(best_device(trained.config))
    done = Masks()
    if len(trained.signature.space) == 3:
        files, done.remarks = find_files(paths, is_scan, SCAN_FORMATS)
    else:
        files, done.remarks = find_files(paths, by_suffix(IMAGES), ", ".join(IMAGES))
    _check_names(files, out)
    out.mkdir(parents=True, exist_ok=True)
    made = digest(f"{file_key(model_file(Path(checkpoint)))} {side} {level}")
    for number, file in enumerate(files, 1):
        told = _Told(progress, f"{file.name} ({number} of {len(files)})")
        try:
            target = _one(trained, file, out, made, side, level, told, done.remarks)
            done.rows.append({"image": str(file), "mask": str(target)})
        except DataError as error:
            done.problems += error.problems
        except OSError as error:  # a file that may not be read
            done.problems.append(f"{error.filename or file}: {error.strerror or error}")
    return done


def _check_names(files: Sequence[Path], out: Path) -> None:
    """Refuse masks that would be written one over the other, or over an image."""
    counts = Counter(map(stem, files))
    if twice := sorted(name for name, count in counts.items() if count > 1):
        names = ", ".join(twice[:NAMED]) + ", …" * (len(twice) > NAMED)
        raise DataError(f"{names}: two images of the same name; give them different names, or do one at a time")
    if over := [file for file in files if file.resolve().parent == out.resolve()]:
        raise DataError(
            f"{over[0]}: lies in {out}, where its mask would take its place; name another folder with --out"
        )


@dataclass
class _Told:
    progress: Progress
    name: str

    def __call__(self, done: int, total: int) -> None:
        self.progress(self.name, done, total)


def _one(
    trained: Trained, file: Path, out: Path, made: str, side: int | None, level: int, told: _Told, remarks: list[str]
) -> Path:
    """Write the mask of a file; where it is."""
    values = written_values(trained.signature)
    told(0, 1)
    if len(trained.signature.space) == 2 and file.suffix.lower() in WINDOWED:
        target = out / f"{stem(file)}.tif"
        with open_windows(file, level) as source:
            tiling = trained.tiling(source.shape[1:], side)
            key = f"{made} {file_key(file)}"
            segment_large(source, target, lambda samples: _logits(trained, samples, file), tiling, key, told, values)
        return target
    with strict_pillow():
        scan = read_image(file)
    samples, wanted = scan.values, len(trained.signature.space)
    if samples.ndim - 1 != wanted:
        raise DataError(f"{file}: has {samples.ndim - 1} dimensions; the network learned from {wanted}")
    if wanted == 3:
        if text := unlike_voxels(trained.signature, scan.spacing):
            remarks.append(f"{file}: {text}")
        samples = Reading(trained.config.window, trained.signature.spacing).samples(scan)
    images = _fitting(trained, torch.tensor(samples).unsqueeze(0), file)
    mask = values[segmented(trained, images, scan.values.shape[1:], scan.spacing, side)[1]]
    told(1, 1)
    if wanted == 3:
        write_nifti(target := out / f"{stem(file)}.nii.gz", mask, scan)
    else:
        target = write_flat(out / stem(file), mask)
    return target


def written_values(signature: Signature) -> Array:
    """What mask files hold for each class, in the smallest type of integers that holds them all."""
    values = signature.values or tuple(range(len(signature.classes)))
    fits = (kind for kind in KINDS if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max)
    return np.array(values, next(fits))


def write_flat(path: Path, mask: Array) -> Path:
    """Write a mask (H, W) as PNG; as TIFF if it holds numbers that PNG does not. The file's name."""
    plain = mask.dtype in (np.uint8, np.uint16)
    target = path.with_name(path.name + (".png" if plain else ".tif"))
    with replaced(target) as part:
        if plain:
            Image.fromarray(mask).save(part, format="PNG")
        else:
            tifffile.imwrite(part, mask, photometric="minisblack", compression="zlib")
    return target


def _logits(trained: Trained, samples: Array, file: Path) -> Tensor:
    """Logits (K, *space) of samples (C, *space) as they are stored."""
    images = _fitting(trained, torch.tensor(samples).unsqueeze(0), file)
    return trained(images)[0]


def _fitting(trained: Trained, images: Tensor, file: Path) -> Tensor:
    """Images as the network takes them: floats with its channels."""
    return in_colours(as_float(images), trained.signature.in_channels, str(file)).to(next(trained.parameters()).device)
