"""Masks of new images and volumes: file by file, large ones in tiles, each as its image lies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import tifffile
import torch
from PIL import Image
from torch import Tensor

from ..data import DataError, as_float
from ..data.arrays import Array
from ..data.files import NAMED, replaced
from ..data.large import open_windows
from ..data.large.slides import SLIDES
from ..data.pair_files import read_image
from ..data.pictures import SUFFIXES, strict_pillow
from ..data.samples import in_colours
from ..data.scans import Reading
from ..data.scans.nifti import write_nifti
from ..data.scans.read import SCAN_FORMATS, is_scan, stem
from ..data.store import digest, file_key
from ..runs.trained import Trained, load, model_files
from ..tasks.networks import Signature
from ..whole import segmented, unlike_voxels
from .evaluate import best_device
from .finding import by_suffix, find_files
from .large import segment_large
from .watching import watching

IMAGES = (*SUFFIXES, *SLIDES)
WINDOWED = (".tif", ".tiff", *SLIDES)
WRITTEN = (".png", ".tif", ".nii.gz")
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
    made = digest(f"{[file_key(file) for file in model_files(Path(checkpoint))]} {side} {level}")
    writer = Writer(trained, written_values(trained.signature), out, made, side, level)
    with watching(trained) as watch:
        for number, file in enumerate(files, 1):
            told = partial(progress, f"{file.name} ({number} of {len(files)})")
            told(0, 1)
            try:
                target, remark = writer.windowed(file, told) if _by_windows(file, trained) else writer.whole(file)
            except DataError as error:
                done.problems += error.problems
                continue
            except OSError as error:  # a file that may not be read
                done.problems.append(f"{file}: {error.strerror or error}")
                continue
            finally:
                watch.next()
            told(1, 1)
            done.rows.append({"image": str(file), "mask": str(target)})
            done.remarks += [f"{file}: {remark}"] if remark else []
    done.remarks += [f"Warning: {remark}"] if (remark := watch.compared.remark) else []
    return done


def _check_names(files: Sequence[Path], out: Path) -> None:
    """Refuse masks that would be written one over the other, or over an image."""
    counts = Counter(map(stem, files))
    if twice := sorted(name for name, count in counts.items() if count > 1):
        names = ", ".join(twice[:NAMED]) + ", …" * (len(twice) > NAMED)
        raise DataError(f"{names}: two images of the same name; give them different names, or do one at a time")
    targets = {(out / f"{name}{suffix}").resolve() for name in counts for suffix in WRITTEN}
    if over := [file for file in files if file.resolve() in targets]:
        raise DataError(f"{over[0]}: a mask would take its place; name another folder with --out")


def _by_windows(file: Path, trained: Trained) -> bool:
    return len(trained.signature.space) == 2 and file.suffix.lower() in WINDOWED


@dataclass(frozen=True)
class Writer:
    """A network, what it writes for each class, and where; `made` says what masks depend on besides the image."""

    trained: Trained
    values: Array
    out: Path
    made: str
    side: int | None
    level: int

    def windowed(self, file: Path, told: Callable[[int, int], None]) -> tuple[Path, None]:
        """Write the mask of an image that may be larger than memory; where it is."""
        target = self.out / f"{stem(file)}.tif"
        with open_windows(file, self.level) as source:
            tiling = self.trained.tiling(source.shape[1:], self.side)
            key = f"{self.made} {file_key(file)}"
            segment_large(source, target, lambda samples: self._logits(samples, file), tiling, key, told, self.values)
        return target, None

    def whole(self, file: Path) -> tuple[Path, str | None]:
        """Write the mask of an image or a volume; where it is, and a warning of voxels unlike those of training."""
        signature = self.trained.signature
        with strict_pillow():
            scan = read_image(file)
        samples, wanted = scan.values, len(signature.space)
        if samples.ndim - 1 != wanted:
            raise DataError(f"{file}: has {samples.ndim - 1} dimensions; the network learned from {wanted}")
        if wanted == 3:
            samples = Reading(self.trained.config.intensity_range, signature.spacing).samples(scan)
        images = self._fitting(torch.tensor(samples).unsqueeze(0), file)
        classes = segmented(self.trained, images, scan.values.shape[1:], scan.spacing, self.side)[1]
        if wanted == 2:
            return write_flat(self.out / stem(file), self.values[classes]), None
        target = self.out / f"{stem(file)}.nii.gz"
        write_nifti(target, self.values[classes], scan)
        return target, unlike_voxels(signature, scan.spacing)

    def _logits(self, samples: Array, file: Path) -> Tensor:
        """Logits (K, *space) of samples (C, *space) as they are stored."""
        logits: Tensor = self.trained(self._fitting(torch.tensor(samples).unsqueeze(0), file))[0]
        return logits

    def _fitting(self, images: Tensor, file: Path) -> Tensor:
        """Images as the network takes them: floats with its channels."""
        fitting = in_colours(as_float(images), self.trained.signature.in_channels, str(file))
        return fitting.to(next(self.trained.parameters()).device)


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
