"""Masks of image files: of whole images and volumes, and of large images in tiles, continued where they stopped."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tifffile
import torch
from PIL import Image
from torch import Tensor

from ..data import DataError, as_float
from ..data.arrays import Array
from ..data.files import replaced, some
from ..data.large import Windows, open_windows, read_window
from ..data.large.slides import SLIDES
from ..data.large.write import Bands
from ..data.pair_files import read_image
from ..data.pictures import SUFFIXES, strict_pillow
from ..data.samples import in_colours
from ..data.scans import Reading
from ..data.scans.nifti import write_nifti
from ..data.scans.read import stem
from ..data.store import digest, file_key
from ..data.value_range import statistics
from ..runs.trained import Trained, model_files
from ..segmentation import segmented, unlike_voxels
from ..tasks.networks import Signature
from ..tiles import Tiling

IMAGES = (*SUFFIXES, *SLIDES)
WINDOWED = (".tif", ".tiff", *SLIDES)
WRITTEN = (".png", ".tif", ".nii.gz")
KINDS = (np.uint8, np.uint16, np.int16, np.int32, np.int64)
NUMBERS = np.arange(256, dtype=np.uint8)
Progress = Callable[[int, int], None]


class MaskWriter:
    """A network, what it writes for each class, and the folder its masks go to.

    A mask holds the values of the masks that the network was trained on. PNG and JPEG become PNG, TIFF and slides tiled
    TIFF with their place in the world, volumes NIfTI on their own grid with the header they have. Raises DataError
    where a mask would take the place of another one or of an image.
    """

    def __init__(
        self, trained: Trained, checkpoint: Path, files: Sequence[Path], out: Path, side: int | None, level: int
    ) -> None:
        _check_names(files, out)
        out.mkdir(parents=True, exist_ok=True)
        self.trained, self.out, self.side, self.level = trained, out, side, level
        self.values = written_values(trained.signature)
        # What masks depend on besides the image.
        self.made = digest(f"{[file_key(file) for file in model_files(checkpoint)]} {side} {level}")
        self._seen: list[tuple[int, Tensor]] = []

    def write(self, file: Path, told: Progress) -> tuple[Path, str | None]:
        """Write the mask of an image or a volume; where it is, and a warning of voxels unlike those of training."""
        self._seen, d = [], len(self.trained.signature.space)
        told(0, 1)
        if d == 2 and file.suffix.lower() in WINDOWED:
            return self._windowed(file, told), None
        with strict_pillow():
            scan = read_image(file)
        samples = scan.values
        if samples.ndim - 1 != d:
            raise DataError(f"{file}: has {samples.ndim - 1} dimensions; the network was trained on {d}")
        if d == 3:
            samples = Reading(self.trained.config.intensity_range, self.trained.signature.spacing).samples(scan)
        images = self._fitting(torch.tensor(samples), file)
        mask = self.values[segmented(self.trained, images, scan.values.shape[1:], scan.spacing, self.side)[1]]
        if d == 2:
            return write_flat(self.out / stem(file), mask), None
        target = self.out / f"{stem(file)}.nii.gz"
        write_nifti(target, mask, scan)
        return target, unlike_voxels(self.trained.signature, scan.spacing)

    def statistics(self) -> Tensor:
        """Minimum, mean and maximum of each channel of the last image, whatever pieces it was read in: (1, 3, C).

        (0, 3, C) if nothing of it was left to read.
        """
        if not self._seen:
            return torch.zeros(0, 3, self.trained.signature.in_channels)
        samples = torch.tensor([count for count, _ in self._seen]).double()
        low, mean, high = torch.cat([found for _, found in self._seen]).unbind(1)  # (pieces, C) each
        mean = (mean * samples.unsqueeze(1)).sum(0) / samples.sum()
        return torch.stack([low.amin(0), mean, high.amax(0)]).unsqueeze(0)

    def _windowed(self, file: Path, told: Progress) -> Path:
        """Write the mask of an image that may be larger than memory."""
        target = self.out / f"{stem(file)}.tif"
        with open_windows(file, self.level) as source:
            tiling = self.trained.tiling(source.shape[1:], self.side)
            key = f"{self.made} {file_key(file)}"
            segment_large(source, target, lambda samples: self._logits(samples, file), tiling, key, told, self.values)
        return target

    def _logits(self, samples: Array, file: Path) -> Tensor:
        """Logits (K, *space) of samples (C, *space) as they are stored."""
        logits: Tensor = self.trained(self._fitting(torch.tensor(samples), file))[0]
        return logits

    def _fitting(self, image: Tensor, file: Path) -> Tensor:
        """An image or a piece of it as the network takes it: floats with its channels (1, C, *space)."""
        fitting = in_colours(as_float(image.unsqueeze(0)), self.trained.signature.in_channels, str(file))
        self._seen.append((math.prod(fitting.shape[2:]), statistics(fitting)))
        return fitting.to(next(self.trained.parameters()).device)


def _check_names(files: Sequence[Path], out: Path) -> None:
    """Refuse masks that would be written one over the other, or over an image."""
    counts = Counter(map(stem, files))
    if twice := sorted(name for name, count in counts.items() if count > 1):
        raise DataError(f"{some(twice)}: two images of the same name; give them different names, or do one at a time")
    targets = {(out / f"{name}{suffix}").resolve() for name in counts for suffix in WRITTEN}
    if over := [file for file in files if file.resolve() in targets]:
        raise DataError(f"{over[0]}: a mask would take its place; name another folder with --out")


@torch.no_grad()
def segment_large(
    source: Windows,
    out: Path,
    network: Callable[[Array], Tensor],
    tiling: Tiling,
    key: str,
    progress: Progress = lambda done, total: None,
    values: Array = NUMBERS,
) -> None:
    """Write the class of every pixel of `source` to the tiled TIFF `out`, with the source's place in the world.

    `network` maps samples (C, h, w) as stored to logits (K, h, w); `key` names the network and the image, so that
    rows made by another network are not taken up again. `progress(done, total)` counts tiles. `values` is what is
    written for each class. Memory does not grow with the image; if killed, it continues when started again.
    """
    _, height, width = source.shape
    (above, below), (before, after) = tiling.margins(height), tiling.margins(width)
    bands, columns = tiling.spans(above + height + below), tiling.spans(before + width + after)
    rows = Bands(out, (height, width), f"{key} {tiling}")
    # Rows of the image that are complete once a band is done; margins are not part of it.
    ends = [min(height, band.keep[1] - above) for band in bands]
    finished = sum(end <= rows.done for end in ends)
    rows.keep(ends[finished - 1] if finished else 0)
    for number, band in enumerate(bands[finished:], finished):
        made = np.empty((band.keep[1] - band.keep[0], before + width + after), np.uint8)
        for place, column in enumerate(columns):
            progress(number * len(columns) + place, len(bands) * len(columns))
            top, bottom = (at - above for at in band.read)
            left, right = (at - before for at in column.read)
            logits = network(read_window(source, top, left, bottom, right))
            made[:, column.outer] = logits[:, band.inner, column.inner].argmax(0).to(torch.uint8).cpu().numpy()
        first = max(0, above - band.keep[0])
        rows.append(made[first : first + ends[number] - rows.done, before : before + width])
    progress(len(bands) * len(columns), len(bands) * len(columns))
    rows.finish(source.place, values)


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
