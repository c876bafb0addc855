"""Every reader on files with flipped, cut and repeated bytes: it reads them or says what is wrong, nothing else."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image

from liespline.lab.data import DataError, celeba, images, mnist, pcam, volumes
from liespline.lab.data.synthetic import faces

TRIES = 40


def make_pcam(folder: Path, **options) -> None:
    rng = np.random.default_rng(0)
    for part, shape in (("x", (6, 96, 96, 3)), ("y", (6, 1, 1, 1))):
        with h5py.File(folder / pcam.file_name("train", part), "w") as file:
            file.create_dataset(part, data=rng.integers(0, 2, shape, np.uint8), **(options if part == "x" else {}))


def make_volumes(folder: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {}
    for split in ("train", "val", "test"):
        arrays[f"{split}_images"] = rng.integers(0, 256, (6, 5, 5, 5), np.uint8)
        arrays[f"{split}_labels"] = np.arange(6).reshape(-1, 1) % 2
    np.savez_compressed(folder / "v.npz", **arrays)


def make_mnist(folder: Path) -> None:
    for name in ("train", "t10k"):
        body = struct.pack(">4B3I", 0, 0, 8, 3, 6, 28, 28) + bytes(6 * 784)
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(body))
        (folder / f"{name}-labels-idx1-ubyte.gz").write_bytes(
            gzip.compress(struct.pack(">4BI", 0, 0, 8, 1, 6) + bytes(6))
        )


def make_images(folder: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("data/a", "data/b"):
        (folder / name).mkdir(parents=True)
        for i, suffix in enumerate(("png", "jpg", "tif")):
            Image.fromarray(rng.integers(0, 256, (16, 16, 3), np.uint8)).save(folder / name / f"{i}.{suffix}")


def make_faces(folder: Path) -> None:
    faces.synthesize(folder / "src", identities=6, pictures=2, seed=1)


def make_prepared(folder: Path) -> None:
    faces.synthesize(folder / "src", identities=8, pictures=4, seed=1)
    celeba.prepare(folder / "src", folder / "out")


READERS: dict[str, tuple[Callable[[Path], None], str, Callable[[Path], object]]] = {
    "pcam": (make_pcam, "*.h5", lambda f: pcam.load(f, "train").__getitems__([0, 5])),
    "pcam chunks": (
        lambda f: make_pcam(f, chunks=(2, 96, 96, 3)),
        "*.h5",
        lambda f: pcam.load(f, "train").__getitems__([0, 5]),
    ),
    "pcam gzip": (
        lambda f: make_pcam(f, chunks=(2, 96, 96, 3), compression="gzip"),
        "*.h5",
        lambda f: pcam.load(f, "train").__getitems__([0, 5]),
    ),
    "volumes": (make_volumes, "*.npz", lambda f: volumes.load(f / "v.npz", "train").__getitems__([0, 5])),
    "mnist": (make_mnist, "*.gz", lambda f: mnist.load(f, "train", "upright").__getitems__([0])),
    "images": (make_images, "data/*/*", lambda f: images.load(f / "data", "train").__getitems__([0])),
    "celeba source": (make_faces, "src/*.txt", lambda f: celeba.check(f / "src")),
    "celeba prepared": (make_prepared, "out/*.*", lambda f: celeba.load(f / "out", "train").__getitems__([0])),
}


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with some flipped (mostly near the ends, where headers and tables are), cut off, or repeated."""
    out = bytearray(raw)
    kind = rng.integers(4)
    if kind == 0:
        return bytes(out[: rng.integers(len(out))])
    if kind == 1:
        start = int(rng.integers(len(out)))
        return bytes(out[:start] + out[start : start + 64] * 2 + out[start:])
    for _ in range(rng.integers(1, 5)):
        near = int(rng.integers(min(len(out), 2000)))
        out[near if rng.random() < 0.6 else len(out) - 1 - near] = int(rng.integers(256))
    return bytes(out)


@pytest.mark.parametrize("reader", READERS)
def test_damaged_files(tmp_path, reader):
    make, pattern, read = READERS[reader]
    make(tmp_path)
    read(tmp_path)
    refusals = []
    for seed in range(TRIES):
        rng = np.random.default_rng(seed)
        files = sorted(path for path in tmp_path.glob(pattern) if path.is_file())
        path = files[rng.integers(len(files))]
        whole = path.read_bytes()
        path.write_bytes(damaged(whole, rng))
        try:
            found = read(tmp_path)
            refusals += found[:1] if isinstance(found, list) else []  # `check` answers with a list of problems
        except DataError as error:
            refusals.append(str(error))
        except Exception as error:
            pytest.fail(f"damage {seed} to {path.name}: {type(error).__name__}: {error}")
        path.write_bytes(whole)
    assert len(refusals) >= TRIES // 8, "the damage is real"
    assert all(tmp_path.name in message for message in refusals), "each message names the file"
    read(tmp_path)
