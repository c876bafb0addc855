"""PatchCamelyon in its official HDF5 files: reading, checking, augmenting (paper, section 4, appendix D)."""

from pathlib import Path

import h5py
import kornia
import numpy as np
import torch
from torch import Tensor, nn

from liespline.lab.data.augment import ANY, Augmentation, Draws
from liespline.lab.data.files import DataError
from liespline.lab.data.samples import as_float
from liespline.lab.data.split import SPLITS, Split
from liespline.lab.settings import one_of

from .hdf5 import hdf5_rows

CLASSES = ("normal", "tumour")
PATCH, CROP = 96, 88
_MARGIN = (PATCH - CROP) // 2
_CENTRE = slice(_MARGIN, PATCH - _MARGIN)


def file_name(split: str, part: str) -> str:
    """The official file name of a split's images ("x") or labels ("y")."""
    return f"camelyonpatch_level_2_split_{split}_{part}.h5"


def available(path: Path) -> tuple[str, ...]:
    """The splits of which at least one file is there."""
    return tuple(s for s in SPLITS if any((path / file_name(s, part)).exists() for part in "xy"))


def check(path: Path) -> list[str]:
    """Every problem that would stop training on `path`, file by file; empty when all is well."""
    problems = []
    for split in dict.fromkeys(("train", "valid", *available(path))):
        try:
            load(path, split)
        except DataError as error:
            problems += error.problems
    return problems


def load(path: Path, split: str) -> Split:
    """A split as 88×88 centre crops: uint8 images (B, 3, 88, 88), targets (B,) in {0, 1}."""
    x_path, y_path = (Path(path) / file_name(one_of("split", split, SPLITS), part) for part in "xy")
    for file in (x_path, y_path):
        packed = file.with_name(file.name + ".gz")
        if packed.exists() and not file.exists():
            raise DataError(f"{packed}: is still packed; run: gunzip {packed.name}")
    images = hdf5_rows(x_path, "x", (PATCH, PATCH, 3), np.dtype(np.uint8))
    labels = hdf5_rows(y_path, "y", (1, 1, 1), np.dtype(np.uint8))
    if len(images) != len(labels):
        raise DataError(f"{x_path} has {len(images):,} rows but {y_path} has {len(labels):,}; fetch both again")
    if not len(images):
        raise DataError(f"{x_path}: has no rows; fetch it again")
    y = labels.read(range(len(labels))).reshape(-1)
    if (bad := np.flatnonzero(y > 1)).size:
        raise DataError(
            f"{y_path}, row {bad[0]}: label {y[bad[0]]} is neither 0 nor 1 ({bad.size} of {y.size} rows); "
            "fetch the official file"
        )
    with h5py.File(x_path, "r") as file:
        synthetic = "synthetic" in file.attrs
    found = Split(
        images, y.astype(np.int64), CLASSES, channels_last=True, window=(_CENTRE, _CENTRE), synthetic=synthetic
    )
    found.whole = (PATCH, PATCH)
    return found


def quarter_turns(images: Tensor, turns: Tensor) -> Tensor:
    """Each image rotated counter-clockwise by its own number of quarter turns, without interpolation."""
    out = images
    for quarter in (1, 2, 3):
        turned = torch.rot90(images, quarter, (-2, -1))
        out = torch.where((turns == quarter).view(-1, 1, 1, 1), turned, out)
    return out


class Augment(nn.Module):
    """The training augmentation of both presets (the paper names the kinds, the released scripts the ranges).

    Quarter turns (unless `rot90=False`), horizontal flip, brightness ±64/255, saturation ×0.75–1.25,
    hue ±0.04 of the circle, contrast ×0.5–1.5 about each channel's mean, clipped to [0, 1] at the end; drawn
    anew for each image. uint8 (B, 3, H, W) in, float32 out, on the images' own device.
    """

    def __init__(self, rot90: bool = True) -> None:
        super().__init__()
        self.rot90 = rot90

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        # All draws come first and in this order, so that `rot90=False` leaves the other draws as they were.
        drawn = draws.uniform(images, 6)  # (6, B)
        turns = (4 * drawn[0]).long() if self.rot90 else torch.zeros_like(drawn[0], dtype=torch.long)
        x = quarter_turns(as_float(images), turns)
        x = torch.where((drawn[1] < 0.5).view(-1, 1, 1, 1), x.flip(-1), x)
        brightness, saturation, hue, contrast = drawn[2:].mul(2).sub(1)  # each in [-1, 1)
        x = x + (64 / 255 * brightness).view(-1, 1, 1, 1)
        # Brightness can leave [0, 1]; clipping waits until the end, as in the released scripts.
        hsv = kornia.color.rgb_to_hsv(x)
        hsv = kornia.enhance.adjust_saturation_raw(hsv, 1 + 0.25 * saturation)
        x = kornia.color.hsv_to_rgb(kornia.enhance.adjust_hue_raw(hsv, 0.04 * 2 * torch.pi * hue))
        # Kornia's contrast scales about the grey mean or zero; the released scripts' about each channel's.
        mean = x.mean((-2, -1), keepdim=True)
        x = (x - mean) * (1 + 0.5 * contrast).view(-1, 1, 1, 1) + mean
        return x.clamp(0, 1), targets


class AnyTurn(Augment):
    """The same, then rotated by any angle: the label of a patch depends on its middle, which stays in view."""

    def __init__(self) -> None:
        super().__init__()
        self.turn = Augmentation({"rotate"})

    def forward(self, images: Tensor, targets: Tensor, draws: Draws = ANY) -> tuple[Tensor, Tensor]:
        turned: tuple[Tensor, Tensor] = self.turn(*super().forward(images, targets, draws), draws)
        return turned
