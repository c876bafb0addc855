"""escnn and e2cnn by the measure of our own layers: how equivariant lift → ReLU → g-corr is.

    python benchmarks/peers.py benchmarks/results/peers.json

They want an environment of their own, in which `PYTHONPATH=src` adds liespline. Twelve orientations, default settings
on all sides; images that are known at every point, rotated exactly; random networks, medians; float32, one core.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

import liespline as ls
from liespline.testing import equivariance_error
from timing import write_tables

ORIENTATIONS, NETS = 12, 12
LIBRARIES = ("liespline", "escnn", "e2cnn")
PLANES = {"escnn": "rot2dOnR2", "e2cnn": "Rot2dOnR2"}
"""What the two libraries call the plane with N rotations."""


class Peer(nn.Module):
    """Two convolutions on regular fields of C_N with a ReLU between them; the output has our axes."""

    def __init__(self, library: str, window: int, width: int, n: int = ORIENTATIONS) -> None:
        super().__init__()
        gspaces, enn = (importlib.import_module(f"{library}.{part}") for part in ("gspaces", "nn"))
        plane = getattr(gspaces, PLANES[library])(N=n)
        self.wrap, self.image = enn.GeometricTensor, enn.FieldType(plane, [plane.trivial_repr])
        field = enn.FieldType(plane, width * [plane.regular_repr])
        first = enn.R2Conv(self.image, field, kernel_size=window)
        self.layers = enn.SequentialModule(first, enn.ReLU(field), enn.R2Conv(field, field, kernel_size=window))
        self.shape = (width, n)

    def forward(self, images: Tensor) -> Tensor:
        """(B, 1, height, width) to (B, C, N, …)."""
        return self.layers(self.wrap(images, self.image)).tensor.unflatten(1, self.shape)


def ours(window: int, width: int, n: int = ORIENTATIONS) -> nn.Module:
    """The same two layers."""
    grid = ls.uniform(ls.SO2(), n)
    return nn.Sequential(ls.Lift(1, width, window, grid), nn.ReLU(), ls.GConv(width, width, window, grid))


def builders(library: str) -> Callable[..., nn.Module]:
    """How a library's network is made."""
    return ours if library == "liespline" else lambda *sizes: Peer(library, *sizes)


class Strongest(nn.Module):
    """The largest response over the orientations, which should not change when the image is rotated by any angle."""

    def forward(self, features: Tensor) -> Tensor:
        """(B, C, N, …) to (B, C, …)."""
        return features.amax(2)


def error(build: Callable[..., nn.Module], window: int, elements: Tensor, *after: nn.Module) -> float:
    """The median over random networks of the relative error at the centre of the image."""
    grid, errors = ls.uniform(ls.SO2(), ORIENTATIONS), []
    for seed in range(NETS):
        torch.manual_seed(seed)
        net = nn.Sequential(build(window, 4), *after)
        errors.append(equivariance_error(net, grid, elements=elements, size=2 * window - 1, seed=seed))
    return statistics.median(errors)


def main(path: str) -> None:
    """Measure, print, write."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    grid = ls.uniform(ls.SO2(), ORIENTATIONS)
    between = grid.elements + grid.spacing / 2
    moves = {
        "at multiples of 90°": (grid.elements[::3],),
        "at multiples of 30°": (grid.elements,),
        "half-way between, the maximum over orientations": (between, Strongest()),
    }
    rows = []
    for window in (5, 7):
        for words, (elements, *after) in moves.items():
            errors = [error(builders(library), window, elements, *after) for library in LIBRARIES]
            rows.append([f"{window}×{window}, {words}", *(f"{value:.1e}" for value in errors)])
            print(" | ".join(rows[-1]), flush=True)
    about = f"Relative error at the centre of the image, {ORIENTATIONS} orientations, medians of {NETS} random networks"
    write_tables(path, {"equivariance": [["", *LIBRARIES], *rows]}, about)


if __name__ == "__main__":
    main(sys.argv[1])
