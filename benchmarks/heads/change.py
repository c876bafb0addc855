"""What the change of a network's output under turns is made of: a small chain, one cause at a time, on one CPU core.

    python -m benchmarks.heads.change FOLDER_OF_IDX_FILES RESULTS.json

Trains a chain on 4,000 digits by the recipe, as it is and with features in discs (ten minutes each; weights are kept
beside the results and not learned again), and turns 500 test digits twice each.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from liespline.nn import shift

from .digits import Digits, turn
from .discs import in_discs
from .training import Settings, train
from .variants import RECIPE, Variant, chain

WIDTHS, ORIENTATIONS, TESTED = (4, 6, 6, 6, 10, 16), 16, 500
STEP = 2 * math.pi / ORIENTATIONS


def network(discs: bool, n_h: int = ORIENTATIONS) -> nn.Module:
    """The chain, on any number of orientations: it has sixteen splines on them."""
    net = chain(widths=WIDTHS, last=7, n_h=n_h, n_k=ORIENTATIONS)
    return in_discs(net) if discs else net


def learned(data: Path, file: Path, discs: bool) -> dict[str, Tensor]:
    if not file.exists():
        variant = Variant(partial(network, discs), **{**RECIPE, "average": 0.98})
        settings = Settings(data, epochs=8, batch=32, limit=4000)
        print(train(variant, 0, replace(settings, keep=file), time.time() + 7200), flush=True)
    found: dict[str, Tensor] = torch.load(file)
    return found


@torch.no_grad()
def change(answer: Callable[[Tensor], Tensor], digits: Tensor, first: Tensor, second: Tensor) -> float:
    """By how much of its spread, in per cent, the output changes between two turns of the same digits."""
    one, other = (answer(turn(digits, angles, "image")) for angles in (first, second))
    return 100 * float((other - one).norm() / (one - one.mean(0)).norm())


def two_grids(net: nn.Module) -> Callable[[Tensor], Tensor]:
    """The mean of two answers: on the grid, and on the grid moved by half a step."""

    def answer(x: Tensor) -> Tensor:
        here = net(x)
        with shift(net, torch.tensor([STEP / 2])):
            return (here + net(x)) / 2

    return answer


def smoothed(digits: Tensor, sigma: float) -> Tensor:
    taps = (-torch.arange(-4.0, 5).square() / (2 * sigma**2)).exp()
    filters = torch.outer(taps, taps) / taps.sum() ** 2
    return nn.functional.conv2d(digits, filters[None, None], padding=4)


def rows(weights: dict[str, Tensor], discs: bool, digits: Tensor) -> dict[str, float]:
    """Changes by cause."""
    net, fine = network(discs).eval(), network(discs, 2 * ORIENTATIONS).eval()
    net.load_state_dict(weights)
    fine.load_state_dict(weights)
    torch.manual_seed(0)
    first, second = 2 * math.pi * torch.rand(2, len(digits))
    quarters = first + math.pi / 2 * torch.randint(4, first.shape)
    on_grid = [STEP * (angles / STEP).round() for angles in (first, second)]

    def in_bf16(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return net(x).float()

    return {
        "quarter turns": change(net, digits, first, quarters),
        "quarter turns, bf16": change(in_bf16, digits, first, quarters),
        "angles of the grid": change(net, digits, *on_grid),
        "any angle": change(net, digits, first, second),
        "any angle, bf16": change(in_bf16, digits, first, second),
        "any angle, digits smoothed": change(net, smoothed(digits, 0.6), first, second),
        "any angle, mean of two grids": change(two_grids(net), digits, first, second),
        "any angle, the same weights on 32 orientations": change(fine, digits, first, second),
    }


def main(data: Path, out: Path) -> None:
    """Learn what is not there yet, then print and keep the table."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {"torch": torch.__version__}
    digits = Digits(data, torch.device("cpu"), TESTED)
    for name, discs in (("as it is", False), ("in discs", True)):
        weights = learned(data, out.with_name(f"{out.stem}-{'discs' if discs else 'plain'}.pt"), discs)
        found[name] = rows(weights, discs, digits.pixels[digits.rows["test"]])
        out.write_text(json.dumps(found, indent=1) + "\n")
        print(name, *(f"{value:6.2f} %  {what}" for what, value in found[name].items()), sep="\n", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
