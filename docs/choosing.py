"""Measure what N_h, kernels and windows cost and bring, for the table of guide/choosing.md: python docs/choosing.py."""

from __future__ import annotations

import platform
import subprocess
import time

import torch
from torch import nn

import liespline as ls
from liespline.lab.data import as_float, digits

STEPS = 200


def images(split: str, rotated: bool) -> tuple[torch.Tensor, torch.Tensor]:
    data = digits.load(split, rotated=rotated)
    pixels, targets = data.__getitems__(list(range(len(data))))
    return as_float(pixels), targets


def train(net: nn.Module) -> float:
    """Train on upright digits; return the seconds of one step."""
    x, y = images("train", rotated=False)
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.02, total_steps=STEPS)
    times = []
    for _ in range(STEPS):
        rows = torch.randint(len(x), (64,), generator=generator)
        begun = time.perf_counter()
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimiser.step()
        schedule.step()
        times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 10]  # other work on the machine only ever adds


@torch.no_grad()
def accuracy(net: nn.Module, rotated: bool) -> float:
    x, y = images("test", rotated)
    return float((net(x).argmax(-1) == y).double().mean())


def row(name: str, n_h: int, kernel: str, n_k: int | None, window: int, weights: int | None) -> int:
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), n_h)
    options = {"kernel": kernel, "n_k": n_k, "kernel_size": window, "weights": weights}
    net = ls.models.classifier(1, 10, grid, widths=(6, 8, 12, 16), **options)
    seconds = train(net)
    net.eval()
    count = sum(p.numel() for p in net.parameters())
    scores = " | ".join(f"{100 * accuracy(net, rotated):.1f} %" for rotated in (False, True))
    print(f"| {name} | {window}×{window} | {count:,} | {scores} | {1e3 * seconds:.0f} ms |", flush=True)
    return count


def main() -> None:
    torch.set_num_threads(1)
    print("| network | window | weights | upright | rotated | training step |\n|---|---|---|---|---|---|")
    weights = row("SE(2), N_h = 8, dense", 8, "dense", None, 5, None)
    row("2-D", 1, "dense", None, 5, weights)
    row("SE(2), N_h = 4, dense", 4, "dense", None, 5, weights)
    row("SE(2), N_h = 16, local N_k = 3", 16, "local", 3, 5, weights)
    row("SE(2), N_h = 8, local N_k = 3", 8, "local", 3, 5, weights)
    row("SE(2), N_h = 8, atrous N_k = 4", 8, "atrous", 4, 5, weights)
    row("SE(2), N_h = 8, local N_k = 3", 8, "local", 3, 3, weights)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(
        f"\nTrained on upright digits of scikit-learn, {STEPS} steps of 64, seed 0; one thread of a "
        f"{platform.machine()} CPU, torch {torch.__version__}, commit {commit.stdout.strip()}."
    )


if __name__ == "__main__":
    main()
