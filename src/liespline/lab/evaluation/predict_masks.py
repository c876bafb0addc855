"""Masks of new images and volumes: file by file, large ones in tiles, each as its image lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from ..data import DataError, as_float
from ..data.files import replaced
from ..data.large import open_windows
from ..data.large.slides import SLIDES
from ..data.pair_files import read_image
from ..data.pictures import SUFFIXES, strict_pillow
from ..data.rows import Array, digest, file_key
from ..data.scans import SCAN_FORMATS, Reading, Scan, is_scan, stem
from ..data.scans.nifti import write_nifti
from ..data.split import in_colours
from ..runs.trained import Trained, load, model_file
from .evaluate import best_device
from .finding import by_suffix, find_files
from .large import segment_large
from .watching import watching

IMAGES = (*SUFFIXES, *SLIDES)
WINDOWED = (".tif", ".tiff", *SLIDES)
Progress = Callable[[str, int, int], None]


def predict_masks(
    checkpoint: Path,
    paths: Sequence[Path],
    out: Path,
    *,
    side: int | None = None,
    level: int = 0,
    progress: Progress = lambda name, done, total: None,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Write the mask of every image in files and folders to `out`; what was written, and remarks on what was left out.

    A mask holds the number of the class of each pixel, 0 for the first. PNG and JPEG become PNG, TIFF and slides tiled
    TIFF with their place in the world, volumes NIfTI on their own grid. A large image that
    was stopped goes on where it was.
    """
    trained = load(checkpoint)
    trained.to(best_device(trained.config))
    if len(trained.signature.space) == 3:
        files, remarks = find_files(paths, is_scan, SCAN_FORMATS)
    else:
        files, remarks = find_files(paths, by_suffix(IMAGES), ", ".join(IMAGES))
    names = [stem(file) for file in files]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(
            f"{', '.join(twice[:5])}: two images of the same name; give them different names, or do one at a time"
        )
    out.mkdir(parents=True, exist_ok=True)
    made = digest(f"{file_key(model_file(Path(checkpoint)))} {side} {level}")
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    with watching(trained) as watch:
        for file in files:
            try:
                rows.append(_one(trained, file, out, made, side, level, progress))
            except DataError as error:
                problems += error.problems
            watch.next()
    remarks += [f"Warning: {remark}"] if (remark := watch.compared.remark) else []
    if problems:
        raise DataError([*problems, f"{out}: holds the masks of the {len(rows)} other images"])
    return rows, remarks


def _one(
    trained: Trained, file: Path, out: Path, made: str, side: int | None, level: int, progress: Progress
) -> dict[str, Any]:
    def told(done: int, total: int) -> None:
        progress(file.name, done, total)

    if len(trained.signature.space) == 2 and file.suffix.lower() in WINDOWED:
        target = out / f"{stem(file)}.tif"
        with open_windows(file, level) as source:
            tiling = trained.tiling(source.shape[1:], side)
            key = f"{made} {file_key(file)}"
            segment_large(source, target, lambda samples: _logits(trained, samples, file), tiling, key, told)
        return {"image": str(file), "mask": str(target)}
    told(0, 1)
    with strict_pillow():
        scan = read_image(file)
    mask = _volume(trained, scan, side) if len(scan.spacing) == 3 else _answer(trained, scan.values, file, side)
    told(1, 1)
    if len(scan.spacing) == 3:
        target = out / f"{stem(file)}.nii.gz"
        write_nifti(target, mask, scan)
    else:
        target = out / f"{stem(file)}.png"
        with replaced(target) as part:
            Image.fromarray(mask).save(part, format="PNG")
    return {"image": str(file), "mask": str(target)}


def _logits(trained: Trained, samples: Array, file: Path) -> Tensor:
    """Logits (K, *space) of samples (C, *space) as they are stored."""
    images = _fitting(trained, torch.tensor(samples).unsqueeze(0), file)
    return trained(images)[0]


def _fitting(trained: Trained, images: Tensor, file: Path) -> Tensor:
    channels = trained.signature.in_channels
    if {images.shape[1], channels} not in ({1, 3}, {channels}):
        raise DataError(f"{file}: has {images.shape[1]} channels; the network learned from {channels}")
    return in_colours(as_float(images), channels).to(next(trained.parameters()).device)


@torch.no_grad()
def _answer(trained: Trained, samples: Array, file: Path, side: int | None) -> Array:
    if samples.ndim - 1 != len(trained.signature.space):
        raise DataError(
            f"{file}: has {samples.ndim - 1} dimensions; the network learned from {len(trained.signature.space)}"
        )
    images = _fitting(trained, torch.tensor(samples).unsqueeze(0), file)
    return trained.in_tiles(images, side).argmax(1)[0].to(torch.uint8).cpu().numpy()


def _volume(trained: Trained, scan: Scan, side: int | None) -> Array:
    """The mask on the volume's own grid: made on cubes of the size that the network learned, and brought back."""
    reading = Reading(trained.config.window, trained.signature.spacing)
    return reading.on_own_grid(scan, _answer(trained, reading.samples(scan), Path("volume"), side))
