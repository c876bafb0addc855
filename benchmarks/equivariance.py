"""Measure how equivariant the layers are: the table of docs/guide/equivariance.md."""

from __future__ import annotations

import math
import platform
import statistics
import subprocess
import warnings

import torch
from torch import nn

import liespline as ls
from liespline.testing import equivariance_error

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
) -> str:
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
    return f"| {name} | {size} | {statistics.median(lift):.1e} | {statistics.median(both):.1e} |"


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    so2 = ls.uniform(ls.SO2(), 12)
    scale = ls.uniform(ls.Scale(2), 5, spacing=0.5 * math.log(2))
    so3 = ls.uniform(ls.SO3(), 60)
    print("| group and basis | window | lift | lift → ReLU → g-corr |\n|---|---|---|---|")
    for k in (3, 5, 7, 9):
        print(measure("SE(2), 12 orientations, default", so2, k, size=2 * k + 1, images=4))
    for degree, k in ((2, 5), (2, 7), (3, 7), (3, 9)):
        basis = ls.SplineBasis(ls.disc(5), degree=degree)
        print(
            measure(
                f"SE(2), 12 orientations, 21 centres of degree {degree}",
                so2,
                k,
                x_basis=basis,
                size=2 * k + 1,
                images=4,
            )
        )
    local = ls.SplineBasis(ls.local(ls.Scale(2), 3, scale.spacing), degree=1)
    step = scale.elements[1:2]
    name = "R²⋊R⁺, 5 scales √2 apart, local N_k = 3, away from the ends"
    far = {"ends": True, "elements": step, "size": 61, "images": 2, "blur": 3.0, "nets": 5}
    print(measure(name, scale, 5, h_basis=local, **far))
    print(measure("SE(3), 60 rotations, default", so3, 5, elements=so3.elements[[3, 17, 40]], size=9, images=2, nets=3))
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    machine = f"float64, {platform.machine()} CPU, torch {torch.__version__}, commit {commit}"
    print(f"\nMedians over {NETS} random nets (fewer for the last two), {machine}.")


if __name__ == "__main__":
    main()
