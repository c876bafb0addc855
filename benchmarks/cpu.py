"""The speed table on one CPU core: `python benchmarks/cpu.py [result.json]`, a few minutes."""

import random
import sys
import warnings

import torch
from torch.nn import functional as F

from layers import Bench, exported_row
from liespline.ops import choose
from liespline.ops.correlate import fourier
from timing import Row, Step, report, times

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
CHANNELS, SIDES = (16, 32, 48, 64, 96, 132, 200, 256, 368), (12, 16, 24, 32, 42, 64, 96)
MOST = 3e10  # multiplications of a direct convolution, so that the whole takes a minute


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


def fourier_rows(count: int = 30, seed: int = 0) -> list[Row]:
    """The Fourier path over torch's convolution, forward and backward in float32, on shapes where it is chosen."""
    draw, ratios = random.Random(seed), []
    while len(ratios) < count:
        batch, inputs, outputs = draw.choice((1, 2, 4, 8, 16)), draw.choice(CHANNELS), draw.choice(CHANNELS)
        side, k = draw.choice(SIDES), draw.choice((3, 5, 7, 9))
        padding = draw.choice((0, k // 2))
        x = torch.randn(batch, inputs, side, side, requires_grad=True)
        weight = torch.randn(outputs, inputs, k, k, requires_grad=True)
        chosen = choose.choose(x, weight, ((k, k),), (1, 1), (padding, padding))
        if x.numel() * weight.numel() / inputs > MOST or chosen.methods != ("fourier",):
            continue
        ratios.append((_ratio(x, weight, padding), f"{batch}×{inputs}→{outputs}, {side}², {k}²"))
    ratios.sort()
    what = f"by Fourier / conv2d, {count} random shapes where it is chosen"
    largest = torch.randn(8, 132, 42, 42, requires_grad=True), torch.randn(132, 132, 5, 5, requires_grad=True)
    return [
        Row("by Fourier / conv2d, the largest layer of (12, 12), batch 8", _ratio(*largest, 0), ""),
        Row(f"{what}, median", ratios[count // 2][0], ""),
        Row(f"{what}, worst", ratios[-1][0], "≤ 1.05", ratios[-1][1]),
    ]


def _ratio(x: torch.Tensor, weight: torch.Tensor, padding: int) -> float:
    steps = {"fourier": _step(x, weight, padding, by=True), "plain": _step(x, weight, padding, by=False)}
    found = times(steps, "cpu", seconds=0.3)
    return found["fourier"] / found["plain"]


def _step(x: torch.Tensor, weight: torch.Tensor, padding: int, by: bool) -> Step:
    def step() -> None:
        y = fourier.correlate(x, weight, (padding, padding)) if by else F.conv2d(x, weight, None, 1, padding)
        torch.autograd.grad(y, (x, weight), torch.ones_like(y))

    return step


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/cpu.json")
