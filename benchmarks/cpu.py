"""The speed table on one CPU core: `python benchmarks/cpu.py [result.json]`, a few minutes."""

import sys
import warnings

import torch

from convolutions import fourier_rows
from exported import exported_row
from layers import Bench
from timing import Row, report

GRID = [
    (channels, n_h, n_k, kind, window, 16)
    for channels in (4, 10, 16, 23)
    for n_h, n_k, kind in ((8, 8, "dense"), (12, 4, "atrous"), (16, 3, "local"), (16, 8, "dense"))
    for window in (3, 5)
]


GROWTH = {
    "n_h": (8, 16, 32),
    "n_k": (1, 3, 5, 9),
    "channels": (8, 16, 32),
    "size": (8, 16, 32),
    "batch": (1, 2, 4),
}


def main(path: str) -> None:
    """Measure, print, write."""
    warnings.filterwarnings("ignore", message=".*energy falls outside.*")
    torch.set_num_threads(1)
    bench = Bench("cpu", torch.float32, batch=4, size=42)
    rows: list[Row] = [
        bench.against_plain(16, 12),
        bench.against_plain(16, 12, "auto"),
        bench.local(16, 16, "≤ 0.35"),
        bench.local(16, 16, "≤ 0.35", degree=2),
        bench.local(10, 16, "≤ 0.35"),
        bench.exponent(16, batch=1),
        bench.scale(batch=1, size=128),
        bench.volumes(batch=1),
        exported_row("cpu", torch.float32, batch=8),
        *fourier_rows(),
        bench.grid(GRID),
    ]
    base = {"channels": 16, "n_h": 16, "n_k": 3, "size": 16, "batch": 2}
    series = [bench.growth(what, values, **base) for what, values in GROWTH.items()]
    report(rows, "cpu", path, series)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/cpu.json")
