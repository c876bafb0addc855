"""How fast PCam images come from disk: `python benchmarks/pipeline.py [result.json]`, with 0, 1, 2, 4, … readers."""

import os
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import torch
from torch.utils.data import DataLoader

from liespline.lab.data import batched
from timing import Row, report

sys.path.append(str(Path(__file__).parents[1]))  # where studies/ is
from studies.data.pcam import load

COUNT, BATCH, SECONDS = 8192, 256, 4.0


def write(folder: Path, chunks: bool) -> None:
    """Random patches as the official files: the images of one split, contiguous or in compressed chunks."""
    noise = np.random.default_rng(0)
    layout = {"chunks": (64, 96, 96, 3), "compression": "gzip", "compression_opts": 1} if chunks else {}
    with h5py.File(folder / "camelyonpatch_level_2_split_train_x.h5", "w") as file:
        images = file.create_dataset("x", (COUNT, 96, 96, 3), np.uint8, **layout)
        for start in range(0, COUNT, 1024):
            images[start : start + 1024] = noise.integers(0, 256, (1024, 96, 96, 3), np.uint8)
    with h5py.File(folder / "camelyonpatch_level_2_split_train_y.h5", "w") as file:
        file["y"] = noise.integers(0, 2, (COUNT, 1, 1, 1), np.uint8)


def speed(folder: Path, workers: int) -> float:
    """Images per second in shuffled batches, after the first pass."""
    split = load(folder, "train")
    pinned = torch.cuda.is_available()
    loader = DataLoader(
        split, BATCH, shuffle=True, collate_fn=batched, num_workers=workers, pin_memory=pinned,
        persistent_workers=workers > 0,
    )  # fmt: skip
    for _ in loader:
        pass
    images, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        for x, _ in loader:
            images += len(x)
    return images / (time.perf_counter() - begin)


def main(path: str) -> None:
    """Measure, print, write."""
    cores = len(os.sched_getaffinity(0))
    counts = [0, *(n for n in (1, 2, 4, 8, 16) if n <= cores)]
    rows = []
    for chunks, name in ((False, "contiguous"), (True, "compressed, decoded once")):
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), chunks)
            for workers in counts:
                found = speed(Path(folder), workers)
                rows.append(Row(f"PCam images/s, {name}, {workers} readers of {cores} cores", found, "≥ 20000"))
    report(rows, "cuda" if torch.cuda.is_available() else "cpu", path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/pipeline.json")
