"""Synthetic tissue written as PCam's official files: structure decides the label, colour says nothing.

Both classes have the same stains, the same number, size and shape of nuclei, the same glands and sheets. In
class 0 (normal) nuclei lie along the layer they belong to, in class 1 (tumour) they stand across it, like
palisades. So the label depends on the angle between a nucleus and its surroundings, whatever the
orientation of both: mirror images and turned patches keep it.
"""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from liespline.lab.data.files import lock, replaced
from liespline.lab.data.split import SPLITS

from ..journal import Progress
from ..pcam import PATCH, file_name
from .work import draw_all, synthetic_folder

Map = NDArray[np.float64]
HEADER = 1 << 14  # more than HDF5 needs beside the rows
# Optical density of the two stains in red, green and blue (Ruifrok and Johnston's vectors).
_HAEMATOXYLIN, _EOSIN = np.array([0.65, 0.70, 0.29]), np.array([0.07, 0.99, 0.11])
_MIDDLE = np.full(2, (PATCH - 1) / 2)
# How far nuclei stray from their class's direction: radians, and the share that lies the other way.
_JITTER, _CONTRARY = 0.38, 0.05
_AXES = np.stack(np.meshgrid(np.arange(PATCH), np.arange(PATCH), indexing="ij"), axis=-1).astype(np.float64)


def synthesize(
    out: Path,
    train: int = 8192,
    valid: int = 2048,
    test: int = 2048,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """Draw the splits into `out` under the official names, half of each positive; same seed, same images.

    Files that are finished are left alone; folders with files from elsewhere are refused.
    """
    if min(train, valid, test) < 2:
        raise ValueError(f"{train} train, {valid} valid, {test} test patches: each split needs at least 2")
    out = Path(out)
    text = f"Synthetic tissue: {train} train, {valid} valid, {test} test patches, seed {seed}."
    synthetic_folder(out, text, [file_name(split, part) for split in SPLITS for part in "xy"])
    with lock(out / ".lock", wait=False):
        for number, (split, count) in enumerate(zip(SPLITS, (train, valid, test), strict=True)):
            labels = np.random.default_rng([seed, number]).permutation(np.arange(count) % 2).astype(np.uint8)
            items = list(enumerate(labels.tolist()))
            patches = draw_all(partial(_numbered_patch, seed, number), items, jobs, progress, split)
            _write(out / file_name(split, "x"), "x", (count, PATCH, PATCH, 3), patches)
            _write(out / file_name(split, "y"), "y", (count, 1, 1, 1), iter(labels.reshape(-1, 1, 1, 1)))


def _write(path: Path, name: str, shape: tuple[int, ...], rows: Iterator[NDArray[np.uint8]]) -> None:
    """A file that is not there yet. HDF5 crashes on a full disk: room is reserved first, and plain writes fill it."""
    if path.exists():
        return
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    layout.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    with replaced(path) as part:
        with open(part, "wb") as stream:
            os.posix_fallocate(stream.fileno(), 0, int(np.prod(shape)) + HEADER)
        with h5py.File(part, "w") as file:
            file.attrs["synthetic"] = "drawn by liespline: no real tissue"
            space = h5py.h5s.create_simple(shape)
            begin = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_U8LE, space, layout).get_offset()
        with open(part, "r+b") as stream:
            stream.seek(begin)
            stream.writelines(row.tobytes() for row in rows)


def _numbered_patch(seed: int, split: int, item: tuple[int, int]) -> NDArray[np.uint8]:
    index, label = item
    return draw_patch(label, np.random.default_rng([seed, split, index]))


def draw_patch(label: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """One patch (96, 96, 3) of the class."""
    texture = _noise(rng, 1.2)
    eosin = 0.32 + 0.10 * _noise(rng, 9.0) + 0.09 * _fibres(rng) + 0.03 * texture
    haematoxylin = np.maximum(0.05 + 0.02 * _noise(rng, 5.0), 0)
    cells = _layers(label, _MIDDLE + rng.uniform(-7, 7, 2), eosin, rng)
    if rng.random() < 0.25:  # a structure of any class at the border says nothing, as in the real data
        away = rng.uniform(0, 2 * np.pi)
        border = _MIDDLE + rng.uniform(38, 50) * np.array([np.cos(away), np.sin(away)])
        cells += _layers(int(rng.integers(2)), border, eosin, rng)
    for cell in cells + _scattered(rng):
        _add_nucleus(haematoxylin, texture, cell, rng)
    return _stained(haematoxylin, np.maximum(eosin, 0), rng)


class Cell(NamedTuple):
    """A nucleus: where (row, column), the direction of its long axis, half-axes in pixels, darkness."""

    place: Map
    angle: float
    long: float
    short: float
    dark: float


def _layers(label: int, near: Map, eosin: Map, rng: np.random.Generator) -> list[Cell]:
    """A gland with its lumen, or some layers of a larger bend, around or through the place `near`."""
    radius = float(np.exp(rng.uniform(np.log(11), np.log(60))))
    towards = rng.uniform(0, 2 * np.pi)
    gland = radius < 19
    centre = near if gland else near - radius * np.array([np.cos(towards), np.sin(towards)])
    distance = np.linalg.norm(_AXES - centre, axis=-1)
    count = int(rng.integers(1, 4) if gland else rng.integers(2, 5))
    spacing = rng.uniform(9, 12)
    radii = [radius + spacing * (k if gland else k - (count - 1) / 2) for k in range(count)]
    eosin += 0.16 * _soft(0.5 * (radii[-1] - radii[0]) + 7 - np.abs(distance - np.mean(radii)), 5)
    if gland:
        eosin *= 1 - rng.uniform(0.4, 1.0) * _soft(radius - rng.uniform(4.5, 7) - distance, 3)

    cells = []
    for r in radii:
        steps = int(2 * np.pi * r / rng.uniform(6.5, 8.5))
        at = rng.uniform(0, 2 * np.pi) + 2 * np.pi * (np.arange(steps) + rng.normal(0, 0.2, steps)) / steps
        for outwards in at[rng.random(steps) > 0.15]:
            place = centre + (r + rng.normal(0, 1.0)) * np.array([np.cos(outwards), np.sin(outwards)])
            across = bool(label) != (rng.random() < _CONTRARY)
            angle = outwards + (0 if across else np.pi / 2) + rng.normal(0, _JITTER)
            cells.append(Cell(place, angle, *_shape(rng)))
    return cells


def _scattered(rng: np.random.Generator) -> list[Cell]:
    """Bystanders of either class: spindle cells at every angle and round lymphocytes."""
    cells = []
    for _ in range(rng.integers(8, 24)):
        cells.append(Cell(rng.uniform(0, PATCH, 2), rng.uniform(0, np.pi), *_shape(rng)))
    for _ in range(rng.integers(2, 20)):
        axis = rng.uniform(1.9, 2.7)
        cells.append(Cell(rng.uniform(0, PATCH, 2), 0.0, axis * rng.uniform(1, 1.15), axis, 1.15))
    return cells


def _shape(rng: np.random.Generator) -> tuple[float, float, float]:
    short = rng.uniform(1.8, 2.6)
    return short * rng.uniform(1.4, 2.1), short, rng.uniform(0.6, 1.05)


def _add_nucleus(density: Map, texture: Map, cell: Cell, rng: np.random.Generator) -> None:
    """An uneven ellipse with grainy chromatin and a darker rim, drawn where it is densest."""
    place, angle, long, short, dark = cell
    reach = int(np.ceil(1.3 * long)) + 1
    low = np.maximum(np.floor(place).astype(int) - reach, 0)
    high = np.minimum(np.floor(place).astype(int) + reach + 1, PATCH)
    if (low >= high).any():
        return
    window = (slice(low[0], high[0]), slice(low[1], high[1]))
    rows, columns = np.moveaxis(_AXES[window] - place, -1, 0)
    along, across = np.cos(angle), np.sin(angle)
    u, v = (rows * along + columns * across) / long, (columns * along - rows * across) / short
    around = np.arctan2(v, u)
    bumps = 1 + 0.08 * np.cos(2 * around + rng.uniform(0, 6.3)) + 0.07 * np.cos(3 * around + rng.uniform(0, 6.3))
    edge = (1 - np.hypot(u, v) / bumps) * short  # roughly the distance inwards, in pixels
    rim = np.exp(-((edge - 0.4) ** 2))
    grain = 0.85 + 0.22 * texture[window] + 0.2 * rim
    density[window] = np.maximum(density[window], dark * grain * _soft(edge, 1.2))


def _soft(distance: Map, width: float) -> Map:
    """0 to 1 across an edge that is `width` pixels wide."""
    return np.clip(0.5 + distance / width, 0, 1)


def _noise(rng: np.random.Generator, scale: float, stretch: float = 1.0, angle: float = 0.0) -> Map:
    """Noise of unit variance, smooth over `scale` pixels and `stretch` times as far in one direction."""
    frequency = np.fft.fftfreq(PATCH)
    rows, columns = np.meshgrid(frequency, frequency, indexing="ij")
    along = rows * np.cos(angle) + columns * np.sin(angle)
    across = columns * np.cos(angle) - rows * np.sin(angle)
    filtered = np.exp(-2 * (np.pi * scale) ** 2 * ((stretch * along) ** 2 + across**2))
    noise = np.fft.ifft2(np.fft.fft2(rng.normal(size=(PATCH, PATCH))) * filtered).real
    unit: Map = noise / noise.std()
    return unit


def _fibres(rng: np.random.Generator) -> Map:
    """Collagen: streaks of one direction, which has nothing to do with the label."""
    return _noise(rng, 1.0, rng.uniform(5, 12), rng.uniform(0, np.pi))


def _stained(haematoxylin: Map, eosin: Map, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Light through two dyes of slightly varying hue and strength, then focus and sensor noise."""
    purple, pink = (vector + rng.normal(0, 0.05, 3) for vector in (_HAEMATOXYLIN, _EOSIN))
    density = haematoxylin[..., None] * purple * rng.uniform(0.9, 1.7) + eosin[..., None] * pink * rng.uniform(0.5, 1.5)
    light = np.exp(-np.maximum(density, 0)) * rng.uniform(0.9, 1.0)
    blur = rng.uniform(0.3, 1.0)
    frequency = np.fft.fftfreq(PATCH)
    lens = np.exp(-2 * (np.pi * blur) ** 2 * (frequency[:, None] ** 2 + frequency**2))[..., None]
    image = np.fft.ifft2(np.fft.fft2(light, axes=(0, 1)) * lens, axes=(0, 1)).real
    image = 255 * image + rng.normal(0, rng.uniform(1, 5), image.shape)
    return np.clip(np.rint(image), 0, 255).astype(np.uint8)
