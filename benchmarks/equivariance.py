"""How equivariant the layers are: `python benchmarks/equivariance.py [benchmarks/results/equivariance.json]`.

`python benchmarks/page.py` then writes the table of docs/guide/equivariance.md.
"""

from __future__ import annotations

import math
import statistics
import sys
import warnings

import torch
from torch import nn

import liespline as ls
from liespline.testing import equivariance_error
from timing import write_tables

NETS = 12


def layers(grid: ls.Grid, window: int, x_basis: ls.SplineBasis | None, h_basis: ls.SplineBasis | None) -> nn.Sequential:
    options = {"x_basis": x_basis, "dtype": torch.float64}
    return nn.Sequential(
        ls.Lift(1, 4, window, grid, **options), nn.ReLU(), ls.GConv(4, 4, window, grid, h_basis=h_basis, **options)
    )


class Inner(nn.Module):
    """A network away from the ends of its grid."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)[:, :, 1:-1]


def measure(
    name: str, grid: ls.Grid, window: int, *, x_basis=None, h_basis=None, ends=False, nets=NETS, **options
) -> list[str]:
    lift, both = [], []
    compared = ls.Grid(grid.group, grid.elements[1:-1], grid.weights[1:-1], grid.spacing) if ends else grid
    options = {"elements": compared.elements} | options
    for seed in range(nets):
        torch.manual_seed(seed)
        net = layers(grid, window, x_basis, h_basis)
        first, whole = (Inner(net[0]), Inner(net)) if ends else (net[0], net)
        lift.append(equivariance_error(first, compared, seed=seed, **options))
        both.append(equivariance_error(whole, compared, seed=seed, **options))
    size = "×".join([str(window)] * grid.group.space_dim)
    cells = [name, size, f"{statistics.median(lift):.1e}", f"{statistics.median(both):.1e}"]
    print(" | ".join(cells), flush=True)
    return cells


def main(path: str) -> None:
    """Measure, print, write."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    so2 = ls.uniform(ls.SO2(), 12)
    scale = ls.uniform(ls.Scale(2), 5, spacing=0.5 * math.log(2))
    so3 = ls.uniform(ls.SO3(), 60)
    rows = [measure("SE(2), 12 orientations, default", so2, k, size=2 * k + 1, images=4) for k in (3, 5, 7, 9)]
    for degree, k in ((2, 5), (2, 7), (3, 7), (3, 9)):
        name, basis = (
            f"SE(2), 12 orientations, 21 centres of degree {degree}",
            ls.SplineBasis(ls.disc(5), degree=degree),
        )
        rows.append(measure(name, so2, k, x_basis=basis, size=2 * k + 1, images=4))
    local = ls.SplineBasis(ls.local(ls.Scale(2), 3, scale.spacing), degree=1)
    name = "R²⋊R⁺, 5 scales √2 apart, local N_k = 3, away from the ends"
    far = {"ends": True, "elements": scale.elements[1:2], "size": 61, "images": 2, "blur": 3.0, "nets": 5}
    rows.append(measure(name, scale, 5, h_basis=local, **far))
    turns = so3.elements[[3, 17, 40]]
    rows.append(measure("SE(3), 60 rotations, default", so3, 5, elements=turns, size=9, images=2, nets=3))
    head = ["group and basis", "window", "lift", "lift → ReLU → g-corr"]
    write_tables(
        path, {"layers": [head, *rows]}, f"Medians over {NETS} random networks (fewer for the last two), float64"
    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "benchmarks/results/equivariance.json")
