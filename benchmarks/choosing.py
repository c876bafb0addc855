"""What elements of H cost in a layer: `python benchmarks/choosing.py [benchmarks/results/choosing.json]`.

`python benchmarks/page.py` then writes the table of docs/guide/networks.md.
"""

from __future__ import annotations

import sys
import time

import torch

import liespline as ls
from liespline.models.kernels import h_basis
from timing import write_tables

TURNS = 12


def costs() -> list[list[str]]:
    """The time of one layer, forward and backward, against that of N_h = 1; all in turn, the best of each."""
    kinds: dict[str, tuple[int, str, int | None]] = {"2-D": (1, "dense", 1)}
    for n in (4, 8, 16):
        kinds |= {f"N_h = {n}, dense": (n, "dense", None), f"N_h = {n}, local N_k = 3": (n, "local", 3)}
    layers = {}
    for name, (n, kernel, n_k) in kinds.items():
        grid = ls.uniform(ls.SO2(), n)
        layer = ls.GConv(16, 16, 5, grid, h_basis=h_basis(grid, kernel, n_k, degree=1), padding=2)
        layers[name] = (layer, torch.randn(4, 16, n, 24, 24))
    best = dict.fromkeys(layers, float("inf"))
    for _ in range(TURNS):
        for name, (layer, x) in layers.items():
            begun = time.process_time()
            layer(x).sum().backward()
            best[name] = min(best[name], time.process_time() - begun)
    return [[name, f"{seconds / best['2-D']:.1f}"] for name, seconds in best.items()]


def main(path: str) -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    tables = {"costs": [["layer, 16 → 16 channels, 5×5", "time against 2-D"], *costs()]}
    write_tables(path, tables, f"`python benchmarks/choosing.py`: processor time, the least of {TURNS} in turn")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/results/choosing.json")
