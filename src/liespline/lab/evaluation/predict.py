"""Predictions of a trained network for image files: one row per image, made and handed out as files are read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch

from ..data import DataError
from ..data.files import grouped
from ..data.samples import Comparison, statistics
from ..data.store import file_key
from ..runs.trained import Trained, load
from ..runs.where import model_files
from ..settings import ConfigError
from .inputs import Input, OtherSizes, Prediction, find_inputs, read_inputs
from .kept import Kept
from .mask_files import MaskWriter, Whole
from .scores import at_once, best_device
from .tta import augmented

BATCH = 64
WINDOWS = Whole()
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
    kept: Kept | None = None
    done: Set[str] = frozenset()
    """The files whose rows an earlier call has written."""
    failures: list[str] = field(default_factory=list)
    read: int = 0
    """How many files have been read so far."""
    told: Callable[[str, int, int], None] = lambda what, done, total: None
    """Called with the progress: of how much of what is done."""

    def __iter__(self) -> Iterator[Row]:
        compared, voxels, count = Comparison(self.trained.value_range), list[str](), 0
        for row, seen, remark in self._predictions():
            count += 1
            if seen is not None:
                compared.add(seen)
            voxels += [remark] if remark else []
            yield row
        if not count and not self.done and self.masks is None:
            raise DataError(self.failures)
        self.remarks += [f"Warning: {remark}" for remark in (*grouped(voxels), compared.remark) if remark]

    def _predictions(self) -> Iterator[Prediction]:
        if (masks := self.masks) is not None:
            return self._of_each(lambda file: masks.write(file, self._tiles_of(file)))
        batches = _batches(self._of_each(lambda file: read_inputs(file, self.trained, self.other_sizes)))
        # By map: no name here keeps a batch while the next one is read.
        return itertools.chain.from_iterable(map(partial(_answers, self.trained), batches))

    def _of_each(self, work: Callable[[Path], Iterator[Found]]) -> Iterator[Found]:
        """What the work on each file gives; what is wrong with it is kept."""
        for file in self.files:
            try:
                yield from () if str(file) in self.done else work(file)
            except DataError as error:
                self.failures += error.problems
            except OSError as error:  # a file, a folder or a disk that cannot be read
                self.failures.append(f"{file}: cannot be read ({error.strerror or error})")
            self.read += 1
            if self.masks is None:
                self.told("files", self.read, len(self.files))

    def _tiles_of(self, file: Path) -> Callable[[int, int], None]:
        place = f"{file.name} ({self.read + 1} of {len(self.files)})"
        return lambda done, total: self.told(place, done, total)


def predict_files(
    checkpoint: Path,
    paths: Sequence[Path],
    other_sizes: OtherSizes = "refuse",
    *,
    out: Path | None = None,
    tile: int | None = None,
    level: int = 0,
    how: Whole = WINDOWS,
    tta: bool = False,
    part: tuple[int, int] | None = None,
) -> Predictions:
    """Class, confidence and all probabilities, or the values, of every image in files and folders; or masks in `out`.

    `tile` is the side of the tiles that masks are made in, `level` that of a pyramid; `tta` averages over reflections
    and grids. Of n calls with `part` = (k, n), the k-th takes every n-th file. What is in `out` is not made again.
    """
    trained = load(checkpoint)
    masks = trained.signature.kind == "masks"
    if masks and other_sizes != "refuse":
        raise ConfigError("--resize and --any-size are not for masks, which are made for images of any size")
    if masks and out is None:
        raise ConfigError("--out is missing: name the folder that the masks go to")
    if not masks and (tile is not None or level or any(how)):
        options = "--tile, --level, --probabilities, --truth and --largest-component"
        raise ConfigError(f"{options} are for masks; {checkpoint} is of task {trained.config.task}")
    if not masks and out is not None and out.suffix.lower() != ".csv":
        raise ConfigError(f"--out {out}: only masks go to a folder; name a file such as {out / 'predictions.csv'}")
    if trained.signature.kind == "points":
        raise DataError(f"{checkpoint}: finds landmarks, not classes; use it from Python with liespline.lab.load")
    trained = augmented(trained) if tta else trained
    trained.to(best_device(trained.config))
    files, remarks = find_inputs(trained, paths)
    files = files if part is None else files[part[0] - 1 :: part[1]]
    if out is None:
        return Predictions(trained, files, remarks, other_sizes)
    made = f"{[file_key(file) for file in model_files(checkpoint)]} {other_sizes} {tile} {level} {how} {tta}"
    kept = Kept(out, made, files, part)
    if masks:
        return Predictions(
            trained, files, remarks, other_sizes, MaskWriter(trained, kept, files, out, tile, level, how)
        )
    return Predictions(trained, files, remarks, other_sizes, kept=kept, done=kept.rows())


def _batches(found: Iterable[Input]) -> Iterator[list[Input]]:
    """Images in their order, as many of one size together as make a batch."""
    batch: list[Input] = []
    for one in found:
        if batch and (len(batch) >= at_once(one.image.shape[1:], BATCH) or batch[0].image.shape != one.image.shape):
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


@torch.no_grad()
def _answers(trained: Trained, batch: Sequence[Input]) -> list[Prediction]:
    images = torch.stack([one.image for one in batch]).to(next(trained.parameters()).device)
    outputs, kind, seen = trained(images).double(), trained.signature.kind, statistics(images)
    values = outputs.softmax(-1) if kind == "classes" else outputs.sigmoid() if kind == "tags" else outputs
    found = []
    for number, (one, own) in enumerate(zip(batch, values.tolist(), strict=True)):
        named, row = dict(zip(trained.classes, own, strict=True)), dict[str, Any](image=one.name)
        if kind == "classes":
            best = max(named, key=named.__getitem__)
            row |= {"class": best, "confidence": named[best], "probabilities": named}
        else:
            row |= {"values": named}
        found.append(Prediction(row, seen[number : number + 1], one.remark))
    return found
