"""Networks and the new files that they are asked about: alike, inverted, of other sizes and depths."""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import nibabel
import numpy as np
import pytest
import torch
from PIL import Image

import liespline
from truth.road import Array, train

ONCE = {"epochs": 1}
PLAIN = {"group": "none", "elements": None, "epochs": 1, "batch_size": 4}


def rows_of(file: Path) -> list[dict[str, str]]:
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def shares(row: Mapping[str, str]) -> list[float]:
    """The probabilities in a row of `predict`."""
    return [float(value) for name, value in row.items() if name.startswith("p(")]


def probabilities(run: Path, images: Array) -> Array:
    """Of images (B, C, *space) of whole numbers, by the network in Python."""
    with torch.no_grad():
        return liespline.load(run)(torch.from_numpy(images)).double().softmax(1).numpy()


def covered(pixels: Array, space: tuple[int, int]) -> Array:
    """Scaled by Pillow in floats until it covers (height, width), and its centre of that size, in whole numbers."""
    scale = max(space[0] / pixels.shape[0], space[1] / pixels.shape[1])
    height, width = (max(w, round(n * scale)) for n, w in zip(pixels.shape[:2], space, strict=True))
    plane = Image.fromarray(pixels.astype(np.float32)).resize((width, height), Image.Resampling.BICUBIC)
    top, left = (height - space[0]) // 2, (width - space[1]) // 2
    cut = np.asarray(plane)[top : top + space[0], left : left + space[1]]
    return np.rint(cut).clip(0, np.iinfo(pixels.dtype).max).astype(pixels.dtype)


def spot(draw: np.random.Generator, shape: Sequence[int]) -> Array:
    """A bright spot on a dark ground."""
    axes = np.meshgrid(*[np.arange(n) - n / 2 + draw.uniform(-2, 2) for n in shape], indexing="ij")
    light = draw.uniform(0.6, 1) * np.exp(-sum(axis**2 for axis in axes) / (2 * draw.uniform(2, 4) ** 2))
    return (255 * light + 10 * draw.random(shape)).clip(0, 255).astype(np.uint8)


def save(path: Path, values: Array, **options: object) -> None:
    """A picture; a volume with voxels of 1.5 × 1 × 1 mm, or as many times as large as `side` says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix != ".gz":
        Image.fromarray(values).save(path, **options)
        return
    side = options.get("side", 1)
    nibabel.save(nibabel.Nifti1Image(values.astype(np.float32), np.diag([1.5 * side, side, side, 1])), path)


@pytest.fixture(scope="session")
def spots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grey network for 18×18, and new images: alike, inverted, of 12 bits in 16, of another size."""
    root, draw = tmp_path_factory.mktemp("spots"), np.random.default_rng(3)
    for name, count in (("tall", 31), ("flat", 22)):
        for i in range(count):
            save(root / "data" / name / f"{97 - 3 * i % 97}.png", spot(draw, (18, 18)))
    for i in range(37):
        image, name = spot(draw, (18, 18)), f"{('tall', 'flat')[i % 3 > 0]}/{i:02}.png"
        save(root / "alike" / name, image)
        save(root / "inverted" / name, 255 - image)
        save(root / "twelve" / name, (image.astype(np.int64) * 4095 // 255).astype(np.uint16))
        large = Image.fromarray(image).resize((36, 36), Image.Resampling.BICUBIC)
        save(root / "large" / name, np.asarray(large))
    train("images", root / "data", root / "run", **ONCE)
    return root


def odd_picture(draw: np.random.Generator, file: Path, kind: int, shape: tuple[int, int], side: int) -> None:
    """An image that Pillow alone reads as we do: of any size, turned by its EXIF, transparent, of 16 bits grey."""
    grey, colour = draw.integers(0, 256, shape, np.uint8), draw.integers(0, 256, (*shape, 3), np.uint8)
    exif = Image.Exif()
    exif[274] = side
    match kind:
        case 0:
            save(file.with_suffix(".png"), colour)
        case 1:
            save(file.with_suffix(".tif"), grey)
        case 2:
            save(file.with_suffix(".jpg"), colour, exif=exif, quality=80)
        case 3:
            save(file.with_suffix(".png"), grey, exif=exif)
        case 4:
            save(file.with_suffix(".png"), np.dstack([colour, draw.integers(0, 256, shape, np.uint8)]))
        case 5:
            alpha = Image.fromarray(grey.T.copy()).resize(shape[::-1])
            Image.merge("LA", [Image.fromarray(grey), alpha]).save(file.with_suffix(".png"))
        case 6:
            Image.fromarray(colour).quantize(9).save(file.with_suffix(".png"), transparency=3)
        case _:
            save(file.with_suffix(".png"), grey.astype(np.uint16) * 257 + draw.integers(0, 200, shape, np.uint16))


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of mixed pictures, and networks for colours and for grey: --size odd and even, with 16 bits and not."""
    root, draw = tmp_path_factory.mktemp("mixed"), np.random.default_rng(1)
    for name, count in (("deep", 26), ("shallow", 20)):
        for kind in ("x", "y"):
            (root / name / kind).mkdir(parents=True)
        for i in range(count):
            file, shape = root / name / ("x" if i % 5 < 3 else "y"), tuple(int(n) for n in draw.integers(15, 44, 2))
            odd_picture(draw, file / f"{(i * 7) % count:02}", i % 8 if name == "deep" else 3, shape, 2 + i % 7)
    train("images", root / "deep", root / "colour", size=17, **ONCE)
    train("images", root / "shallow", root / "grey", size=24, **ONCE)
    return root


def ball(draw: np.random.Generator, shape: tuple[int, int, int] = (7, 9, 8)) -> Array:
    """A volume in Hounsfield-like numbers: air and a soft ball."""
    axes = np.meshgrid(*[np.arange(n) - (n - 1) / 2 for n in shape], indexing="ij")
    return np.where(sum(axis**2 for axis in axes) < draw.uniform(4, 9), 60, -900) + draw.normal(0, 20, shape)


@pytest.fixture(scope="session")
def balls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two networks for scans of one channel, with a window and without."""
    root, draw = tmp_path_factory.mktemp("balls"), np.random.default_rng(2)
    for i in range(21):
        save(root / "data" / ("a" if i % 3 else "b") / f"{i}.nii.gz", ball(draw))
    for i in range(9):
        values = ball(draw)
        save(root / "alike" / f"{i}.nii.gz", values)
        save(root / "inverted" / f"{i}.nii.gz", -1000 - values)
    train("volumes", root / "data", root / "windowed", intensity_range="-1000,1000", **PLAIN)
    train("volumes", root / "data", root / "by-itself", **PLAIN)
    return root
