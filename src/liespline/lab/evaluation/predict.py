"""Predictions of a trained network for image files: one row per image, made and handed out as files are read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor

from ..data import DataError, as_float
from ..data.centred import centred
from ..data.files import grouped, some
from ..data.pictures import SUFFIXES, in_16_bits, read_array, scaled, strict_pillow
from ..data.samples import in_colours
from ..data.scans import Reading
from ..data.scans.read import SCAN_FORMATS, is_scan, read_scan
from ..data.value_range import Comparison, statistics
from ..data.volumes import ARRAYS, read_volumes
from ..runs.trained import Trained, load
from ..segmentation import unlike_voxels
from ..settings import ConfigError
from .evaluate import best_device
from .mask_files import IMAGES, MaskWriter
from .scores import MOST_VOXELS

BATCH = 64
OtherSizes = Literal["refuse", "resize", "any"]
"""Images of another size than in training: refused, brought to it as training would have, or taken as they are."""
Row = dict[str, Any]
Found = TypeVar("Found")


@dataclass
class Predictions:
    """The rows for some files, made while they are iterated over: never more than one batch of images is in memory.

    What is wrong with a file is added to `failures`, and the next one is read; if no file is left, that is a DataError,
    but for masks, which are written anyway.
    """

    trained: Trained
    files: Sequence[Path]
    remarks: list[str]
    """What was left out; after the last row, also how the images and their voxels compare with those of training."""
    other_sizes: OtherSizes = "refuse"
    masks: MaskWriter | None = None
    failures: list[str] = field(default_factory=list)
    read: int = 0
    """How many files have been read so far."""
    told: Callable[[str, int, int], None] = lambda what, done, total: None
    """Called with the progress: of how much of what is done."""
    _voxels: list[str] = field(default_factory=list)
    """What is to be said of voxels that are of another size altogether."""

    def __iter__(self) -> Iterator[Row]:
        compared, count = Comparison(self.trained.value_range), 0
        if self.masks is not None:
            batches = self._of_each(partial(self._mask, self.masks, compared))
        else:
            # By map: no name here keeps a batch while the next one is read.
            batches = map(partial(_rows, self.trained, compared), _batches(self._of_each(self._images)))
        for rows in batches:
            count += len(rows)
            yield from rows
        if not count and self.masks is None:
            raise DataError(self.failures)
        remarks = [*grouped(self._voxels), *([remark] if (remark := compared.remark) else [])]
        self.remarks += [f"Warning: {remark}" for remark in remarks]

    def _of_each(self, work: Callable[[Path], Iterator[Found]]) -> Iterator[Found]:
        """What the work on each file gives; what is wrong with it is kept."""
        for file in self.files:
            try:
                yield from work(file)
            except DataError as error:
                self.failures += error.problems
            except OSError as error:  # a file, a folder or a disk that cannot be read
                self.failures.append(f"{file}: cannot be read ({error.strerror or error})")
            self.read += 1
            if self.masks is None:
                self.told("files", self.read, len(self.files))

    def _mask(self, masks: MaskWriter, compared: Comparison, file: Path) -> Iterator[list[Row]]:
        place = f"{file.name} ({self.read + 1} of {len(self.files)})"
        target, remark = masks.write(file, partial(self.told, place))
        compared.add(masks.statistics())
        self._voxels += [f"{file}: {remark}"] if remark else []
        yield [{"image": str(file), "mask": str(target)}]

    def _images(self, file: Path) -> Iterator[tuple[str, Tensor]]:
        """The images of a file as the network takes them: floats with its channels, of a size it can predict for."""
        name, channels, any_size = None, self.trained.signature.in_channels, self.other_sizes == "any"
        for name, image in images_of(file, self.trained, self.other_sizes, self._voxels):
            fitting = as_float(in_colours(image.unsqueeze(0), channels, name))[0]
            self.trained.check_size(tuple(image.shape[1:]), name, any_size=any_size)
            yield name, fitting
        if name is None:
            raise DataError(f"{file}: holds no images")


def predict_files(
    checkpoint: Path,
    paths: Sequence[Path],
    other_sizes: OtherSizes = "refuse",
    *,
    out: Path | None = None,
    tile: int | None = None,
    level: int = 0,
) -> Predictions:
    """Class, confidence and all probabilities, or the values, of every image in files and folders; or masks in `out`.

    Images are brought to the network as training brought them. `tile` is the side of tiles, `level` that of a pyramid.
    """
    trained = load(checkpoint)
    masks, d = trained.signature.kind == "masks", len(trained.signature.space)
    if masks and other_sizes != "refuse":
        raise ConfigError("--resize and --any-size are not for masks, which are made for images of any size")
    if masks and out is None:
        raise ConfigError("--out is missing: name the folder that the masks go to")
    if not masks and (tile is not None or level):
        raise ConfigError(f"--tile and --level are for masks; {checkpoint} is of task {trained.config.task}")
    if not masks and out is not None and out.suffix.lower() != ".csv":
        raise ConfigError(f"--out {out}: only masks go to a folder; name a file such as {out / 'predictions.csv'}")
    if trained.signature.kind == "points":
        raise DataError(f"{checkpoint}: finds landmarks, not classes; use it from Python with liespline.lab.load")
    trained.to(best_device(trained.config))
    if d == 3 if masks else trained.signature.spacing is not None:
        files, remarks = find_files(paths, is_scan, SCAN_FORMATS)
    else:
        suffixes = IMAGES if masks else ARRAYS if d == 3 else SUFFIXES
        files, remarks = find_files(paths, by_suffix(suffixes), ", ".join(suffixes))
    writer = MaskWriter(trained, checkpoint, files, out, tile, level) if masks and out is not None else None
    return Predictions(trained, files, remarks, other_sizes, writer)


def by_suffix(suffixes: tuple[str, ...]) -> Callable[[Path], bool]:
    """Whether a path is a file with such a name."""
    return lambda path: path.is_file() and path.suffix.lower() in suffixes


def find_files(paths: Sequence[Path], fits: Callable[[Path], bool], formats: str) -> tuple[list[Path], list[str]]:
    """The files that are named, those in named folders that fit, and a remark on what of these is left out.

    A folder that fits, as one of DICOM slices does, counts as a file.
    """
    files: list[Path] = []
    others: list[Path] = []

    def sort(path: Path) -> None:
        if fits(path):
            files.append(path)
        elif path.is_dir():
            for entry in sorted(path.iterdir()):
                if not entry.name.startswith("."):
                    sort(entry)
        else:
            others.append(path)

    if missing := [path for path in paths if not path.exists()]:
        raise DataError([f"{path}: does not exist" for path in missing])
    for path in paths:
        before = len(files)
        sort(path) if path.is_dir() else files.append(path)
        if len(files) == before:
            raise DataError(f"{path}: has no {formats} files in it")
    if not others:
        return files, []
    count = "1 file is" if len(others) == 1 else f"{len(others)} files are"
    return files, [f"{count} left out, not {formats}: {some(list(map(str, others)))}"]


def images_of(
    file: Path, trained: Trained, other_sizes: OtherSizes, remarks: list[str]
) -> Iterator[tuple[str, Tensor]]:
    """Every image of a file by name: (C, *space), as training would see it, apart from its channels."""
    space, resized = trained.signature.space, other_sizes == "resize"
    if (side := trained.signature.spacing) is not None:
        scan = read_scan(file)
        remarks += [f"{file}: {text}"] if (text := unlike_voxels(trained.signature, scan.spacing)) else []
        samples = Reading(trained.config.intensity_range, side).samples(scan)
        yield str(file), torch.from_numpy(centred(samples, space))
        return
    if len(space) == 3:
        boxed = trained.config.size is not None or resized  # as in training: in the middle of a box
        for name, volume in read_volumes(file):
            yield name, torch.from_numpy(centred(volume, space) if boxed else volume)
        return
    with strict_pillow():
        pixels = read_array(file)
    if trained.value_range is not None and trained.value_range.dtype == "uint16":
        pixels = in_16_bits(pixels)
    pixels = trained.prepared(pixels)
    if resized and pixels.shape[:2] != space and len(space) == 2:
        pixels = scaled(pixels, (space[0], space[1]))
    image = torch.tensor(pixels)
    yield str(file), image.unsqueeze(0) if image.ndim == 2 else image.movedim(-1, 0)


def _batches(found: Iterable[tuple[str, Tensor]]) -> Iterator[list[tuple[str, Tensor]]]:
    """Images in their order, as many of one size together as make a batch."""
    batch: list[tuple[str, Tensor]] = []
    for name, image in found:
        most = max(1, min(BATCH, MOST_VOXELS // math.prod(image.shape[1:])))
        if batch and (len(batch) >= most or batch[0][1].shape != image.shape):
            yield batch
            batch = []
        batch.append((name, image))
    if batch:
        yield batch


@torch.no_grad()
def _rows(trained: Trained, compared: Comparison, batch: Sequence[tuple[str, Tensor]]) -> list[Row]:
    kind, names = trained.signature.kind, trained.classes
    images = torch.stack([image for _, image in batch]).to(next(trained.parameters()).device)
    compared.add(statistics(images))
    outputs = trained(images).double()
    if kind != "classes":
        values = (outputs if kind == "numbers" else outputs.sigmoid()).tolist()
        return [
            {"image": image, "values": dict(zip(names, own, strict=True))}
            for (image, _), own in zip(batch, values, strict=True)
        ]
    rows: list[Row] = []
    for (image, _), shares in zip(batch, outputs.softmax(-1).tolist(), strict=True):
        best = max(range(len(shares)), key=shares.__getitem__)
        rows.append({"image": image, "class": names[best], "confidence": shares[best]})
        rows[-1]["probabilities"] = dict(zip(names, shares, strict=True))
    return rows
