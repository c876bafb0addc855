"""Files as a network takes them, brought to it as its training images were: the one road of `predict`."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..data import DataError, as_float
from ..data.files import some
from ..data.large.slides import SLIDES
from ..data.pictures import SUFFIXES, in_16_bits, read_array, scaled, strict_pillow
from ..data.samples import in_colours
from ..data.scans import Reading, Scan
from ..data.scans.read import SCAN_FORMATS, is_scan, read_scan
from ..data.volumes import ARRAYS, centred, read_volumes
from ..runs.trained import Trained
from ..segmentation import unlike_voxels

OtherSizes = Literal["refuse", "resize", "any"]
"""Images of another size than in training: refused, brought to it as training would have, or taken as they are."""


class Input(NamedTuple):
    """An image by name: floats (C, *space) with the channels of the network."""

    name: str
    image: Tensor
    scan: Scan | None = None
    """What the file of a volume holds that a mask is made for."""
    remark: str | None = None
    """On voxels that are of another size altogether."""


class Prediction(NamedTuple):
    """What is said of an image."""

    row: dict[str, Any]
    seen: Tensor | None
    """Minimum, mean and maximum of each channel of the image: (1, 3, C); None if nothing of it was left to read."""
    remark: str | None = None
    """That of the input."""


def find_inputs(trained: Trained, paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The files that a network can be asked about, in these files and folders, and a remark on what is left out.

    A folder of DICOM slices counts as a file.
    """
    signature = trained.signature
    if signature.spacing is not None:
        return _find(paths, is_scan, SCAN_FORMATS)
    flat = (*SUFFIXES, *SLIDES) if signature.kind == "masks" else SUFFIXES
    suffixes = flat if len(signature.space) == 2 else ARRAYS
    return _find(paths, lambda path: path.is_file() and path.suffix.lower() in suffixes, ", ".join(suffixes))


def _find(paths: Sequence[Path], fits: Callable[[Path], bool], formats: str) -> tuple[list[Path], list[str]]:
    if missing := [path for path in paths if not path.exists()]:
        raise DataError([f"{path}: does not exist" for path in missing])
    files: list[Path] = []
    others: list[Path] = []
    for path in paths:
        alone = fits(path) or not path.is_dir()
        held = {path: True} if alone else {entry: fits(entry) for entry in _entries(path, fits)}
        if not any(held.values()):
            raise DataError(f"{path}: has no {formats} files in it")
        files += [entry for entry, right in held.items() if right]
        others += [entry for entry, right in held.items() if not right]
    if not others:
        return files, []
    count = "1 file is" if len(others) == 1 else f"{len(others)} files are"
    return files, [f"{count} left out, not {formats}: {some(list(map(str, others)))}"]


def _entries(folder: Path, fits: Callable[[Path], bool]) -> Iterator[Path]:
    """The files in a folder and in those below it."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not fits(entry):
            yield from _entries(entry, fits)
        else:
            yield entry


def read_inputs(file: Path, trained: Trained, other_sizes: OtherSizes = "refuse") -> Iterator[Input]:
    """Every image of a file; DataError where the network cannot take it."""
    signature = trained.signature
    if signature.spacing is not None:
        found = _scan(file, trained)
    elif len(signature.space) == 3:
        found = _volumes(file, trained, other_sizes)
    else:
        found = iter([Input(str(file), _picture(file, trained, other_sizes))])
    for one in found:
        image = fitted(trained, one.image, one.name)
        if signature.kind != "masks":  # which are made in tiles
            trained.check_size(tuple(image.shape[1:]), one.name, any_size=other_sizes == "any")
        yield one._replace(image=image)


def fitted(trained: Trained, image: Tensor, where: str) -> Tensor:
    """A stored image (C, *space), or a piece of one, as floats with the network's channels; `where` names it."""
    return as_float(in_colours(image.unsqueeze(0), trained.signature.in_channels, where))[0]


def _scan(file: Path, trained: Trained) -> Iterator[Input]:
    """A volume on the voxels of training, in the middle of the box of training if there is one answer for all of it."""
    scan, signature = read_scan(file), trained.signature
    samples = Reading(trained.config.intensity_range, signature.spacing).samples(scan)
    remark = f"{file}: {text}" if (text := unlike_voxels(signature, scan.spacing)) else None
    if signature.kind == "masks":
        yield Input(str(file), torch.tensor(samples), scan, remark)
    else:
        yield Input(str(file), torch.tensor(centred(samples, signature.space)), None, remark)


def _volumes(file: Path, trained: Trained, other_sizes: OtherSizes) -> Iterator[Input]:
    """The volumes of an array, each in the middle of the box of training if there was one."""
    boxed = trained.config.size is not None or other_sizes == "resize"
    for name, volume in read_volumes(file):
        yield Input(name, torch.from_numpy(centred(volume, trained.signature.space) if boxed else volume))


def _picture(file: Path, trained: Trained, other_sizes: OtherSizes) -> Tensor:
    """An image in two dimensions, as it is stored: (C, H, W)."""
    with strict_pillow():
        pixels = read_array(file)
    if trained.value_range is not None and trained.value_range.dtype == "uint16":
        pixels = in_16_bits(pixels)
    pixels, space = trained.prepared(pixels), trained.signature.space
    if other_sizes == "resize" and pixels.shape[:2] != space:
        pixels = scaled(pixels, (space[0], space[1]))
    return torch.tensor(np.atleast_3d(pixels)).movedim(-1, 0)
