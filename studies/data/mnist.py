"""MNIST's official idx files, or Fashion-MNIST's, and the sets generated from them.

"Generated": made here from these files by the recipes below; the published rotated, scaled and affine sets are others.
"""

import gzip
import io
import zlib
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liespline.lab.data.arrays import Array
from liespline.lab.data.files import DataError, check_declared_size
from liespline.lab.data.split import SPLITS, Split
from liespline.lab.settings import one_of

from .matrices import Matrices, places, transformed

CLASSES = tuple("0123456789")
SIDE, ODD, WIDE = 28, 29, 40
_TURNS, _SIZES = (0, 360), (0.3, 1)
MOVED = {
    "rotated": Matrices(turn=_TURNS),
    "rotated on 29": Matrices(turn=_TURNS),
    "rotated about mass": Matrices(turn=_TURNS),
    "scaled": Matrices(zoom=_SIZES),
    "rotated-scaled": Matrices(turn=_TURNS, zoom=_SIZES),
    "anywhere": Matrices(anywhere=True),
    "affine": Matrices(turn=(-20, 20), stretch=(0.8, 1.2), slant=(-0.2, 0.2), anywhere=True),
}
VARIANTS = ("upright", *MOVED)
_COUNTS = {"train": 10_000, "valid": 2_000, "test": 50_000}
_PARTS = (*SPLITS, "outside")
_HALF = "rotated-scaled"  # the field trains on 5,000 of these
MOST_BYTES = 1 << 29  # MNIST has 47 million; these files are read whole


def check(path: Path) -> list[str]:
    """Every problem of the four idx files."""
    try:
        _pool(Path(path))
    except DataError as error:
        return error.problems
    return []


def load(path: Path, split: str, variant: str = "rotated", deal: int = 0) -> Split:
    """A split: uint8 images (B, 1, 28, 28), targets (B,).

    `upright`: 50,000 / 10,000 / 10,000, the test file as it is. `anywhere`: the same, each shifted to its own place
    in 40×40, all of it in view. `affine`: that for training and validation; test images are transformed within the
    ranges of affNIST as well.
    The others deal 70,000 images out without overlap, 10,000 / 2,000 / 50,000 (`rotated-scaled`: 5,000 to train on).
    Each image is moved by a matrix of its own: turned by any angle, shrunk by a factor of 0.3 to 1, or both.

    MNIST centres the mass of a digit half a pixel from the image's centre, about which `rotated` turns it: the way from
    one to the other tells which side was up. `rotated about mass` has no such cue. `rotated on 29` are the same digits
    on 29×29 points about the same centre, for networks that keep the centre of odd images alone.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant {variant!r} is unknown; choose one of {', '.join(VARIANTS)}")
    one_of("split", split, SPLITS)
    return _loaded(Path(path), split, variant, deal, _state(Path(path)))


def outside(path: Path, variant: str = "rotated") -> Split:
    """The 8,000 digits that no deal has, transformed alike: for what must not be settled on test images."""
    return _loaded(Path(path), "outside", variant, 0, _state(Path(path)))


def _state(path: Path) -> object:
    files = [(file.name, file.stat()) for file in sorted(path.glob("*ubyte*")) if file.is_file()]
    return (*((name, status.st_size, status.st_mtime_ns) for name, status in files), *_COUNTS.values())


@lru_cache(maxsize=4)  # a run asks for the same set several times, and making it takes a while
def _loaded(path: Path, split: str, variant: str, deal: int, state: object) -> Split:
    train, test = _pool(path)
    if variant in ("upright", "anywhere", "affine"):
        kept = max(1, round(len(train[1]) * 5 / 6))
        cut = {"train": slice(0, kept), "valid": slice(kept, None), "test": slice(None)}[split]
        images, labels = (part[cut] for part in (test if split == "test" else train))
        if variant != "upright":
            images = _moved(images, split, variant if split == "test" else "anywhere")
        return Split(images, labels.astype(np.int64), CLASSES)
    images, labels = (np.concatenate(parts) for parts in zip(train, test, strict=True))
    if len(labels) < (needed := sum(_COUNTS.values())):
        raise DataError(f"{path}: has {len(labels)} digits; {variant} MNIST needs {needed}")
    own = rows(split, deal, len(labels))
    own = own[: len(own) // 2] if variant == _HALF and split == "train" else own
    return Split(_moved(images[own], split, variant), labels[own].astype(np.int64), CLASSES)


def rows(split: str, deal: int = 0, digits: int = 70_000) -> NDArray[np.int64]:
    """Which of all digits a deal has in a split, in order; the last 8,000 of the first are "outside" of every deal."""
    needed = sum(_COUNTS.values())
    begin = sum(_COUNTS[part] for part in _PARTS[: _PARTS.index(split)])
    dealt = np.random.default_rng(0).permutation(digits)
    if deal:
        dealt[:needed] = np.random.default_rng([2, deal]).permutation(dealt[:needed])
    return dealt[begin : begin + _COUNTS.get(split, digits - begin)]


def _moved(images: NDArray[np.uint8], split: str, variant: str) -> NDArray[np.uint8]:
    """Images f(M⁻¹(x − t)), each with its own M and shift t; those rotated about their mass keep it in the centre."""
    moves = MOVED[variant]
    rng = np.random.default_rng([1, _PARTS.index(split)])
    side = WIDE if moves.anywhere else ODD if variant == "rotated on 29" else SIDE
    matrices = moves.draw(rng, len(images))
    back, offsets = np.linalg.inv(matrices).astype(np.float64), None
    if variant == "rotated about mass":
        offsets = centres_of_mass(images)
    elif moves.anywhere:
        offsets = -np.einsum("nij,nj->ni", back, places(images, matrices, side, rng))
    return transformed(images / 255, back, side, offsets)


def centres_of_mass(images: Array) -> NDArray[np.float64]:
    """Where the brightness of images (N, H, W) is centred, in samples from their centre: (N, 2); 0 for black ones."""
    rows, columns = (np.arange(n) - (n - 1) / 2 for n in images.shape[1:])
    bright = images.astype(np.float64)
    mass = np.maximum(bright.sum((1, 2)), 1e-12)
    return np.stack([bright.sum(2) @ rows / mass, bright.sum(1) @ columns / mass], -1)


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
