"""Predictions of a trained network for image files: one row per image, made and handed out a batch at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ..data import DataError, as_float
from ..data.centred import centred
from ..data.files import grouped
from ..data.images import in_16_bits, scaled
from ..data.pictures import SUFFIXES, read_array, strict_pillow
from ..data.scans import SCAN_FORMATS, Reading, is_scan, read_scan
from ..data.split import in_colours
from ..data.value_range import Comparison, statistics
from ..data.volumes import ARRAYS, read_volumes
from ..runs.trained import ONE_ANSWER, Trained, load
from ..whole import unlike_voxels
from .evaluate import best_device
from .finding import by_suffix, find_files
from .scores import MOST_VOXELS

BATCH = 64
OtherSizes = Literal["refuse", "resize", "any"]
"""Images of another size than in training: refused, brought to it as training would have, or taken as they are."""


@dataclass
class Predictions:
    """The rows for some files, made while they are iterated over: never more than one batch of images is in memory.

    What is wrong with a file is added to `failures`, and the next one is read; if no file is left, that is a DataError.
    """

    trained: Trained
    files: Sequence[Path]
    remarks: list[str]
    """What was left out; after the last row, also how the images and their voxels compare with those of training."""
    other_sizes: OtherSizes = "refuse"
    failures: list[str] = field(default_factory=list)
    read: int = 0
    """How many files have been read so far."""
    _voxels: list[str] = field(default_factory=list)
    """What is to be said of voxels that are of another size altogether."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        compared, count = Comparison(self.trained.value_range), 0
        # By map: no name here keeps a batch while the next one is read.
        for rows in map(partial(_answers, self.trained, compared), _batches(self._images())):
            count += len(rows)
            yield from rows
        if not count:
            raise DataError(self.failures)
        remarks = [*grouped(self._voxels), *([remark] if (remark := compared.remark) else [])]
        self.remarks += [f"Warning: {remark}" for remark in remarks]

    def _images(self) -> Iterator[tuple[str, Tensor]]:
        for file in self.files:
            found = False
            try:
                for name, image in _images(file, self.trained, self.other_sizes, self._voxels):
                    found = True
                    yield name, _fitting(name, image, self.trained, self.other_sizes)
                if not found:
                    raise DataError(f"{file}: holds no images")
            except DataError as error:
                self.failures += error.problems
            except OSError as error:  # a folder or a disk that cannot be read
                self.failures.append(f"{file}: cannot be read ({error.strerror})")
            self.read += 1


def predict_files(checkpoint: Path, paths: Sequence[Path], other_sizes: OtherSizes = "refuse") -> Predictions:
    """Class, confidence and all probabilities, or the values, of every image in files and folders.

    Images are brought to the network as training brought them.
    """
    trained = load(checkpoint)
    if trained.signature.kind not in ONE_ANSWER:
        raise DataError(f"{checkpoint}: finds landmarks, not classes; use it from Python with liespline.lab.load")
    trained.to(best_device(trained.config))
    if trained.signature.spacing is not None:
        files, remarks = find_files(paths, is_scan, SCAN_FORMATS)
    else:
        suffixes = ARRAYS if len(trained.signature.space) == 3 else SUFFIXES
        files, remarks = find_files(paths, by_suffix(suffixes), ", ".join(suffixes))
    return Predictions(trained, files, remarks, other_sizes)


def task_of(checkpoint: Path) -> str:
    """The task that a network was trained for."""
    return load(checkpoint).config.task


def _images(file: Path, trained: Trained, other_sizes: OtherSizes, remarks: list[str]) -> Iterator[tuple[str, Tensor]]:
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
            yield name, torch.from_numpy(centred(volume.numpy(), space)) if boxed else volume
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


def _fitting(name: str, image: Tensor, trained: Trained, other_sizes: OtherSizes) -> Tensor:
    """The image as the network takes it: floats with its channels, of a size it can answer for."""
    channels = trained.signature.in_channels
    fitting = as_float(in_colours(image.unsqueeze(0), channels, name))[0]
    trained.check_size(tuple(image.shape[1:]), name, any_size=other_sizes == "any")
    return fitting


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
def _answers(trained: Trained, compared: Comparison, batch: Sequence[tuple[str, Tensor]]) -> list[dict[str, Any]]:
    device = next(trained.parameters()).device
    images = torch.stack([image for _, image in batch]).to(device)
    compared.add(statistics(images))
    rows: list[dict[str, Any]] = []
    outputs = trained(images).double()
    if trained.signature.kind != "classes":
        values = (outputs if trained.signature.kind == "numbers" else outputs.sigmoid()).tolist()
        return [
            {"image": name, "values": dict(zip(trained.classes, found, strict=True))}
            for (name, _), found in zip(batch, values, strict=True)
        ]
    for (name, _), shares in zip(batch, outputs.softmax(-1).tolist(), strict=True):
        best = max(range(len(shares)), key=shares.__getitem__)
        probabilities = dict(zip(trained.classes, shares, strict=True))
        rows.append({"image": name, "class": trained.classes[best], "confidence": shares[best]})
        rows[-1]["probabilities"] = probabilities
    return rows
