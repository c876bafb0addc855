"""What N_h, kernels and windows cost and bring: `python benchmarks/choosing.py [benchmarks/results/choosing.json]`.

`python benchmarks/page.py` then writes the tables of docs/guide/choosing.md.
"""

from __future__ import annotations

import sys
import time

import torch
from torch import nn

import liespline as ls
from liespline.lab.data import as_float, digits
from liespline.models.kernels import h_basis
from timing import write_tables

STEPS = 200


def images(split: str, rotated: bool) -> tuple[torch.Tensor, torch.Tensor]:
    data = digits.load(split, rotated=rotated)
    pixels, targets = data.__getitems__(list(range(len(data))))
    return as_float(pixels), targets


def train(net: nn.Module) -> None:
    """Train on upright digits."""
    x, y = images("train", rotated=False)
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.02, total_steps=STEPS)
    for _ in range(STEPS):
        rows = torch.randint(len(x), (64,), generator=generator)
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimiser.step()
        schedule.step()


@torch.no_grad()
def accuracy(net: nn.Module, rotated: bool) -> float:
    x, y = images("test", rotated)
    return float((net(x).argmax(-1) == y).double().mean())


def row(name: str, n_h: int, kernel: str, n_k: int | None, window: int, weights: int | None) -> tuple[list[str], int]:
    """Train one network; its line, and how many parameters it has."""
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), n_h)
    options = {"kernel": kernel, "n_k": n_k, "kernel_size": window, "parameters": weights}
    net = ls.models.classifier(1, 10, grid, widths=(6, 8, 12, 16), **options)
    train(net)
    net.eval()
    count = sum(p.numel() for p in net.parameters())
    scores = [f"{100 * accuracy(net, rotated):.1f} %" for rotated in (False, True)]
    cells = [name, f"{window}×{window}", f"{count:,}", *scores]
    print(" | ".join(cells), flush=True)
    return cells, count


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
    for _ in range(12):
        for name, (layer, x) in layers.items():
            begun = time.process_time()
            layer(x).sum().backward()
            best[name] = min(best[name], time.process_time() - begun)
    return [[name, f"{seconds / best['2-D']:.1f}"] for name, seconds in best.items()]


NETWORKS = (
    ("2-D", 1, "dense", None, 5),
    ("SE(2), N_h = 4, dense", 4, "dense", None, 5),
    ("SE(2), N_h = 8, local N_k = 3", 8, "local", 3, 5),
    ("SE(2), N_h = 8, atrous N_k = 4", 8, "atrous", 4, 5),
    ("SE(2), N_h = 8, local N_k = 3", 8, "local", 3, 3),
    ("SE(2), N_h = 16, local N_k = 3", 16, "local", 3, 5),
)


def main(path: str) -> None:
    """Measure, print, write."""
    torch.set_num_threads(1)
    first, weights = row("SE(2), N_h = 8, dense", 8, "dense", None, 5, None)
    scores = [first, *(row(*network, weights)[0] for network in NETWORKS)]
    tables = {
        "scores": [["network", "window", "parameters", "upright", "rotated"], *scores],
        "costs": [["layer, 16 → 16 channels, 5×5", "time against 2-D"], *costs()],
    }
    about = f"`python benchmarks/choosing.py`: digits of scikit-learn, {STEPS} steps of 64, one seed"
    write_tables(path, tables, about)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/results/choosing.json")
