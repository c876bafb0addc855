"""Rotated MNIST, generated on the device from the official idx files: 12,000 digits to train on, 50,000 to test.

Every image is one bicubic interpolation of the stored pixels. `about` is the point a digit is turned about: "image",
the official recipe, is the centre (13.5, 13.5); "mass" is the digit's own centre of mass, which takes a cue away: the
direction from the one to the other tells which way is up.
"""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from liespline.lab.data.elastic import NODES, deformed

SIDE, TRAIN, TEST = 28, 12_000, 50_000


class Digits:
    """The stored pixels and labels of all 70,000 digits on a device, dealt out without overlap."""

    def __init__(self, folder: Path, device: torch.device, limit: int | None = None, test: int | None = None) -> None:
        pixels, labels = (
            np.concatenate([_idx(folder, f"{part}-{kind}-ubyte.gz") for part in ("train", "t10k")])
            for kind in ("images-idx3", "labels-idx1")
        )
        order = np.random.default_rng(0).permutation(len(labels))
        self.pixels = torch.from_numpy(pixels[order]).to(device).float().div_(255).unsqueeze(1)
        self.labels = torch.from_numpy(labels[order].astype(np.int64)).to(device)
        self.rows = {"train": slice(0, limit or TRAIN), "test": slice(TRAIN, TRAIN + (test or limit or TEST))}

    def turned(
        self, split: str, about: str, seed: int = 0, step: float = 0, first: float = 0, side: int = SIDE
    ) -> tuple[Tensor, Tensor]:
        """A split with every digit turned by an angle of its own, always the same: images and labels.

        With a step, angles are `first` and whole steps more. `side`: see `turn`.
        """
        pixels, labels = self.pixels[self.rows[split]], self.labels[self.rows[split]]
        generator = torch.Generator().manual_seed(100 * seed + len(split))  # on the CPU: the same on every machine
        angles = 2 * math.pi * torch.rand(len(labels), generator=generator, dtype=torch.float64)
        if step:
            angles = first + step * (angles / step).floor()
        parts = zip(pixels.split(4096), angles.float().to(pixels.device).split(4096), strict=True)
        return torch.cat([turn(part, angle, about, side=side) for part, angle in parts]), labels


def turn(
    images: Tensor, angles: Tensor, about: str, stretch: float = 0.0, elastic: float = 0.0, side: int = SIDE
) -> Tensor:
    """Images `(B, 1, 28, 28)` turned by angles `(B,)`, black where nothing is known.

    With `stretch`, a random matrix acts before: the identity plus normal numbers of this deviation. It scales, shears
    and squeezes by a little about the same point. With `elastic`, the digits are bent before: displaced by a smooth
    random field of this deviation in pixels, which leaves their centre of mass where it is. With `side`, the result is
    read off at that many points per side, as far apart as the pixels and about the same centre.
    """
    points = _points(side, images)
    centre = images.new_full((len(images), 1, 2), (SIDE - 1) / 2)
    if about == "mass":
        weights = images.flatten(1)
        centre = (weights @ _points(SIDE, images) / weights.sum(1, keepdim=True)).unsqueeze(1)
    cos, sin = angles.cos(), angles.sin()
    back = torch.stack((torch.stack((cos, sin), -1), torch.stack((-sin, cos), -1)), -2)  # the inverse turn
    if stretch:
        back = (torch.eye(2, device=images.device) + stretch * torch.randn_like(back)) @ back
    source = (points - centre) @ back.mT + centre
    if elastic:
        normal = torch.randn(2 * NODES**2, len(images), device=images.device)
        middle = (SIDE - 1) / 2
        source = deformed(source - middle, images, normal, elastic) + middle
    where = ((2 * source + 1) / SIDE - 1).flip(-1).view(-1, side, side, 2)
    return torch.nn.functional.grid_sample(images, where, mode="bicubic", align_corners=False).clamp(0, 1)


def _points(side: int, images: Tensor) -> Tensor:
    """Rows and columns `(side², 2)` of points about the centre of the stored pixels."""
    axis = torch.arange(side, device=images.device, dtype=images.dtype) - (side - SIDE) / 2
    return torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1).view(-1, 2)


def _idx(folder: Path, name: str) -> np.ndarray:
    with gzip.open(folder / name) as stream:
        data = stream.read()
    shape = np.frombuffer(data, ">u4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)
