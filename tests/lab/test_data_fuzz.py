"""Every reader on files with flipped, cut and repeated bytes: it reads them or says what is wrong, nothing else."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lab.hostile_files import make_faces, make_images, make_mnist, make_pcam, make_prepared, make_volumes
from liespline.lab.data import DataError, images, volumes
from studies.data import celeba, mnist, pcam

TRIES = 40

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
