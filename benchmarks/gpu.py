"""The speed table on a CUDA device: `python benchmarks/gpu.py [result.json]`."""

import sys
import warnings

import torch

from exported import exported_row
from layers import Bench
from networks import pcam_rows
from timing import Row, report

GRID = [
    (channels, n_h, n_k, kind, window, size)
    for channels, size in ((8, 32), (16, 42), (23, 38), (40, 19), (64, 16))
    for n_h, n_k, kind in ((8, 8, "dense"), (12, 4, "atrous"), (16, 3, "local"), (16, 8, "dense"))
    for window in (3, 5)
] + [(32, 16, 3, "local", 7, 32), (11, 12, 12, "dense", 5, 42)]


GROWTH = {
    "n_h": (8, 16, 32, 64),
    "n_k": (1, 3, 5, 9),
    "channels": (16, 32, 64),
    "size": (16, 32, 64),
    "batch": (16, 64, 256),
}


def main(path: str) -> None:
    """Measure, print, write."""
    warnings.filterwarnings("ignore", message=".*energy falls outside.*")
    torch.backends.cudnn.benchmark = True
    bench = Bench("cuda", torch.bfloat16, batch=64, size=42)
    rows: list[Row] = [
        bench.against_plain(32, 12),
        bench.local(32, 16, "≤ 0.6"),
        bench.local(64, 16, "≤ 0.4", size=32),
        bench.local(32, 32, "≤ 0.3"),
        bench.local(32, 16, "≤ 0.6", degree=2),
        bench.local(64, 16, "≤ 0.4", degree=2, size=32),
        bench.exponent(32, batch=32),
        bench.scale(batch=8, size=128),
        bench.volumes(batch=2),
        exported_row("cuda", torch.bfloat16, batch=256),
    ]
    rows += pcam_rows(batch=256)
    report(rows, "cuda", path)
    rows.append(bench.grid(GRID))
    report(rows, "cuda", path)
    base = {"channels": 32, "n_h": 16, "n_k": 3, "size": 32, "batch": 64}
    series = [bench.growth(what, values, **base) for what, values in GROWTH.items()]
    report(rows, "cuda", path, series)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/gpu.json")
