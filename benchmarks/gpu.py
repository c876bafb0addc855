"""The speed table on a CUDA device: `python benchmarks/gpu.py [result.json]`."""

import sys
import warnings

import torch

from layers import Bench
from networks import pcam_rows
from timing import Row, report

GRID = [
    (channels, n_h, n_k, kind, window, size)
    for channels, size in ((8, 32), (16, 42), (23, 38), (40, 19), (64, 16))
    for n_h, n_k, kind in ((8, 8, "dense"), (12, 4, "atrous"), (16, 3, "local"), (16, 8, "dense"))
    for window in (3, 5)
] + [(32, 16, 3, "local", 7, 32), (11, 12, 12, "dense", 5, 42)]


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
        bench.grid(GRID),
    ]
    report(rows, "cuda", path)
    rows += pcam_rows(batch=256)
    report(rows, "cuda", path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/gpu.json")
