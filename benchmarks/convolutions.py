"""The Fourier path against torch's own convolution, on shapes drawn at random among those where it is chosen."""

import random

import torch
from torch.nn import functional as F

from liespline.ops import choose
from liespline.ops.correlate import fourier
from timing import Row, Step, times

CHANNELS, SIDES = (16, 32, 48, 64, 96, 132, 200, 256, 368), (12, 16, 24, 32, 42, 64, 96)
MOST = 3e10  # multiplications of a direct convolution, so that the whole takes a minute


def fourier_rows(count: int = 30, seed: int = 0) -> list[Row]:
    """The worst and the median ratio, forward and backward, in float32."""
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
