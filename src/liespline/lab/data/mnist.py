"""MNIST's official idx files, and the rotated and scaled sets generated from them.

"Generated": made here from MNIST by the recipes below; the published rotated and scaled sets are other files.
"""

import gzip
import io
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from .files import DataError, check_declared_size
from .split import SPLITS, Split, check_split
from .turned import centres_of_mass, turned

CLASSES = tuple("0123456789")
VARIANTS = ("upright", "rotated", "rotated about mass", "scaled")
SIDE = 28
_COUNTS = {
    "train": 10_000,
    "valid": 2_000,
    "test": 50_000,
}  # rotated and scaled: 12k to train on, 50k to test
_SMALLEST = 0.3
MOST_BYTES = 1 << 29  # MNIST has 47 million; these files are read whole


def check(path: Path) -> list[str]:
    """Every problem of the four idx files."""
    try:
        _pool(Path(path))
    except DataError as error:
        return error.problems
    return []


def load(path: Path, split: str, variant: str = "rotated") -> Split:
    """A split: uint8 images (B, 1, 28, 28), targets (B,).

    `upright`: 50,000 / 10,000 / 10,000, the test file as it is. `rotated` and `scaled` deal 70,000 digits out
    without overlap, 10,000 / 2,000 / 50,000, each turned by any angle, or shrunk by a factor of 0.3 to 1.

    MNIST centres the mass of a digit half a pixel from the image's centre, about which `rotated` turns it: the way from
    one to the other tells which side was up. `rotated about mass` has no such cue.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant {variant!r} is unknown; choose one of {', '.join(VARIANTS)}")
    check_split(split)
    train, test = _pool(Path(path))
    if variant == "upright":
        kept = max(1, round(len(train[1]) * 5 / 6))
        cut = {"train": slice(0, kept), "valid": slice(kept, None), "test": slice(None)}[split]
        images, labels = (part[cut] for part in (test if split == "test" else train))
        return Split(images, labels.astype(np.int64), CLASSES)
    images, labels = (np.concatenate(parts) for parts in zip(train, test, strict=True))
    needed = sum(_COUNTS.values())
    if len(labels) < needed:
        raise DataError(f"{path}: has {len(labels)} digits; {variant} MNIST needs {needed}")
    begin = sum(_COUNTS[s] for s in SPLITS[: SPLITS.index(split)])
    rows = np.random.default_rng(0).permutation(len(labels))[begin : begin + _COUNTS[split]]
    draw = np.random.default_rng([1, SPLITS.index(split)]).random(len(rows))
    chosen, angles = images[rows], 2 * np.pi * draw
    if variant == "rotated":
        moved = turned(chosen / 255, angles, SIDE)
    elif variant == "rotated about mass":
        moved = turned(chosen / 255, angles, SIDE, about=centres_of_mass(chosen))
    else:
        factors = _SMALLEST + (1 - _SMALLEST) * draw
        moved = np.stack([_shrunk(image, factor) for image, factor in zip(chosen, factors, strict=True)])
    return Split(moved, labels[rows].astype(np.int64), CLASSES)


def _shrunk(image: NDArray[np.uint8], factor: float) -> NDArray[np.uint8]:
    """The image scaled by a factor ≤ 1 about its centre, averaged over what each new pixel covers."""
    side = 2 * int(np.ceil(SIDE / factor / 2)) + 2
    margin = (side - SIDE) // 2
    half = SIDE / factor / 2
    box = (side / 2 - half, side / 2 - half, side / 2 + half, side / 2 + half)
    wide = Image.fromarray(np.pad(image, margin))
    return np.asarray(wide.resize((SIDE, SIDE), Image.Resampling.BICUBIC, box=box))


Part = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def _pool(path: Path) -> tuple[Part, Part]:
    return _part(path, "train"), _part(path, "t10k")


def _part(path: Path, name: str) -> Part:
    images_path, labels_path = (
        _find(path, f"{name}-images-idx3-ubyte"),
        _find(path, f"{name}-labels-idx1-ubyte"),
    )
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.ndim != 3 or images.shape[1:] != (SIDE, SIDE):
        raise DataError(f"{images_path}: has shape {images.shape}; expected (N, {SIDE}, {SIDE})")
    if labels.shape != images.shape[:1]:
        raise DataError(f"{labels_path}: has shape {labels.shape} for {len(images)} images; fetch both again")
    if (bad := np.flatnonzero(labels > 9)).size:
        raise DataError(f"{labels_path}, row {bad[0]}: label {labels[bad[0]]} is no digit; fetch it again")
    return images, labels


def _find(path: Path, name: str) -> Path:
    for candidate in (path / f"{name}.gz", path / name):
        if candidate.is_file():
            return candidate
    raise DataError(f"{path / name}.gz: does not exist; expected MNIST's four idx files there")


def read_idx(path: Path) -> NDArray[np.uint8]:
    """An idx file of bytes, packed with gzip or not; its header is not trusted."""
    raw = path.open("rb")
    packed = path.suffix == ".gz"
    try:
        with raw, gzip.GzipFile(fileobj=raw) if packed else io.BufferedReader(raw) as stream:
            magic = stream.read(4)
            if len(magic) != 4 or magic[:3] != b"\x00\x00\x08" or not 1 <= magic[3] <= 4:
                raise DataError(f"{path}: begins with {magic.hex()}; expected an idx file of bytes")
            header = stream.read(4 * magic[3])
            shape = tuple(np.frombuffer(header[: len(header) // 4 * 4], ">u4").tolist())
            size = int(np.prod([float(n) for n in shape]))
            check_declared_size(path, size, f"shape {shape}")
            if size > MOST_BYTES:
                raise DataError(f"{path}: declares shape {shape}, {size:,} bytes; at most {MOST_BYTES:,} are read")
            body = stream.read(size + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be unpacked ({error}); it is truncated or damaged: fetch it again") from error
    if len(shape) != magic[3] or len(body) != size:
        have = "more" if len(body) > size else f"{len(body):,}"
        raise DataError(f"{path}: declares shape {shape}, {size:,} bytes, but holds {have}; fetch it again")
    return np.frombuffer(body, np.uint8).reshape(shape)
