"""Official MNIST files of a few drawn digits."""

import gzip
import struct
from pathlib import Path

import numpy as np

RNG = np.random.default_rng(0)


def idx(array: np.ndarray) -> bytes:
    return b"\x00\x00\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def small_mnist(path: Path, train: int = 60, test: int = 12) -> dict[str, np.ndarray]:
    arrays = {}
    for name, count in (("train", train), ("t10k", test)):
        arrays[f"{name}-images-idx3-ubyte"] = RNG.integers(0, 256, (count, 28, 28), np.uint8)
        arrays[f"{name}-labels-idx1-ubyte"] = RNG.integers(0, 10, count).astype(np.uint8)
    for name, array in arrays.items():
        (path / f"{name}.gz").write_bytes(gzip.compress(idx(array), 1))
    return arrays
