"""Masks of image files: of whole images and volumes, and of large images in tiles, continued where they stopped."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tifffile
import torch
from PIL import Image
from torch import Tensor

from ..data import DataError
from ..data.arrays import Array
from ..data.files import replaced, some
from ..data.large import Windows, open_windows, read_window
from ..data.large.slides import SLIDES
from ..data.large.write import Bands
from ..data.samples import statistics
from ..data.scans import Reading
from ..data.scans.nifti import write_nifti
from ..data.scans.read import stem
from ..networks import Signature
from ..runs.trained import Trained
from ..segmentation import segmented
from ..tiles import Tiling
from .cases import largest_components
from .inputs import Prediction, fitted, read_inputs
from .kept import Kept

WINDOWED = (".tif", ".tiff", *SLIDES)
WRITTEN = (".png", ".tif", ".nii.gz")
KINDS = (np.uint8, np.uint16, np.int16, np.int32, np.int64)
NUMBERS = np.arange(256, dtype=np.uint8)
Progress = Callable[[int, int], None]


class Whole(NamedTuple):
    """What is done with masks of whole images, which are then read as a whole."""

    probabilities: bool = False
    """Also write the probabilities of all classes, of volumes as a fourth axis, of images as pages of a TIFF file."""
    largest: bool = False
    """Keep the largest component of each class."""


class MaskWriter:
    """A network, what it writes for each class, and the folder its masks go to.

    A mask holds the values of the masks that the network was trained on. PNG and JPEG become PNG, TIFF and slides tiled
    TIFF with their place in the world, volumes NIfTI on their own grid with the header they have. Raises DataError
    where a mask would take the place of another one or of an image.
    """

    def __init__(
        self, trained: Trained, kept: Kept, files: Sequence[Path], out: Path, side: int | None, level: int, how: Whole
    ) -> None:
        _check_names(files, out)
        out.mkdir(parents=True, exist_ok=True)
        self.trained, self.kept, self.out, self.side, self.level, self.how = trained, kept, out, side, level, how
        self.values, self._done = written_values(trained.signature), kept.masks()

    def write(self, file: Path, told: Progress) -> Iterator[Prediction]:
        """Write the mask of an image or a volume, if it is not there, and say where it is."""
        told(0, 1)
        there = [path for end in WRITTEN if (path := self.out / f"{stem(file)}{end}").is_file()]
        if str(file) in self._done and there:
            yield Prediction({"image": str(file), "mask": str(there[0])}, None)
            return
        if len(self.trained.signature.space) == 2 and file.suffix.lower() in WINDOWED and not any(self.how):
            yield self._windowed(file, told)
        else:
            yield from self._read_whole(file)
        self.kept.add(str(file))

    def _read_whole(self, file: Path) -> Iterator[Prediction]:
        for one in read_inputs(file, self.trained):
            image, scan = one.image.unsqueeze(0).to(self._device), one.scan
            space, spacing = (scan.values.shape[1:], scan.spacing) if scan else (image.shape[2:], (1.0, 1.0))
            logits, found = segmented(self.trained, image, space, spacing, self.side)
            mask = self.values[largest_components(found) if self.how.largest else found]
            if scan:
                target = self.out / f"{stem(file)}.nii.gz"
                write_nifti(target, mask, scan)
            else:
                target = write_flat(self.out / stem(file), mask)
            if self.how.probabilities:
                shares = logits.softmax(1)[0].cpu().numpy()
                shares = Reading(side=self.trained.signature.spacing).on_own_grid(shares, space, spacing)
                place = self.out / f"{stem(file)}_probabilities"
                if scan:
                    write_nifti(place.with_name(f"{place.name}.nii.gz"), np.moveaxis(shares, 0, -1), scan)
                else:
                    with replaced(place.with_name(f"{place.name}.tif")) as part:
                        tifffile.imwrite(part, shares, photometric="minisblack", compression="zlib")
            yield Prediction({"image": str(file), "mask": str(target)}, statistics(image), one.remark)

    @property
    def _device(self) -> torch.device:
        return next(self.trained.parameters()).device

    def _windowed(self, file: Path, told: Progress) -> Prediction:
        """Write the mask of an image that may be larger than memory."""
        target, seen = self.out / f"{stem(file)}.tif", list[tuple[int, Tensor]]()

        def logits(samples: Array) -> Tensor:
            piece = fitted(self.trained, torch.tensor(samples), str(file)).unsqueeze(0)
            seen.append((math.prod(piece.shape[2:]), statistics(piece)))
            return self.trained(piece.to(self._device))[0]

        with open_windows(file, self.level) as source:
            tiling = self.trained.tiling(source.shape[1:], self.side)
            segment_large(source, target, logits, tiling, self.kept.keys[str(file)], told, self.values)
        return Prediction({"image": str(file), "mask": str(target)}, _of_pieces(seen))


def _of_pieces(pieces: Sequence[tuple[int, Tensor]]) -> Tensor | None:
    """The statistics (1, 3, C) of an image, by the number of samples and the statistics of each piece of it."""
    if not pieces:
        return None
    samples = torch.tensor([count for count, _ in pieces]).double()
    low, mean, high = torch.cat([found for _, found in pieces]).unbind(1)  # (pieces, C) each
    return torch.stack([low.amin(0), samples @ mean / samples.sum(), high.amax(0)]).unsqueeze(0)


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
