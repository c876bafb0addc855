"""What becomes of white noise in deep networks as they are drawn: second moments, high frequencies, equivariance.

`python benchmarks/depth.py` writes results/depth.json and prints both tables of docs/guide/training.md.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
import subprocess
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

import liespline as ls
from liespline.models.kernels import h_basis
from liespline.testing import measure_equivariance

STEP = 0.5 * math.log(2)
GRIDS = {
    "SO(2) 8": (ls.uniform(ls.SO2(), 8), 4),
    "O(2) 16": (ls.uniform(ls.O2(), 16), 8),
    "SO(3) 12": (ls.uniform(ls.SO3(), 12), None),
    "scale 4": (ls.uniform(ls.Scale(2), 4, spacing=STEP), 2),
    "SIM(2) 4x3": (ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 3), spacing=(None, STEP)), (2, 2)),
}
"""Each with the number of atrous splines; those of SO(3) are as many as elements."""
KERNELS = ("dense", "local", "atrous", "pointwise")
DRAWS = 5


def layers(name: str, kernel: str, width: int, depth: int, bandwidth: float, window: int = 5) -> list[nn.Module]:
    """A lift and group correlations that keep the size."""
    grid, splines = GRIDS[name]
    basis = h_basis(grid, kernel, splines if kernel == "atrous" else None)
    options = {"padding": "same", "padding_mode": "circular", "bias": False}
    made = [ls.Lift(1, width, window, grid, **options)]
    made += [ls.GConv(width, width, window, grid, h_basis=basis, **options) for _ in range(depth - 1)]
    return [ls.nn.redraw(layer, bandwidth) for layer in made]


@torch.no_grad()
def moments(name: str, kernel: str, width: int, bandwidth: float, window: int = 5) -> list[float]:
    """Over He's 2, behind layers 1, 5, 10 and 20: medians over draws."""
    d = GRIDS[name][0].group.space_dim
    each = []
    for seed in range(DRAWS):
        torch.manual_seed(seed)
        x = torch.randn(2, 1, *[21 if d == 2 else 6] * d)
        found = []
        for i, layer in enumerate(layers(name, kernel, width, 20, bandwidth, window)):
            x = layer(torch.relu(x) if i else x)
            found.append(float(x.square().mean()) / 2)
        each.append([found[i] for i in (0, 4, 9, 19)])
    return [statistics.median(column) for column in zip(*each, strict=True)]


@torch.no_grad()
def high(name: str, kernel: str, bandwidth: float, depth: int = 6) -> float:
    """The share of energy above half the Nyquist frequency, without the mean, behind layers with batch norm."""
    torch.manual_seed(0)
    d = GRIDS[name][0].group.space_dim
    x = torch.randn(4, 1, *[21 if d == 2 else 8] * d)
    for i, layer in enumerate(layers(name, kernel, 16 if d == 2 else 8, depth, bandwidth)):
        x = layer(torch.relu(ls.nn.BatchNorm(x.shape[1])(x)) if i else x)
    axes = tuple(range(3, x.ndim))
    energy = torch.fft.fftn(x - x.mean(axes, keepdim=True), dim=axes).abs().square().mean((0, 1, 2))
    frequencies = torch.stack(torch.meshgrid(*[torch.fft.fftfreq(n).abs() for n in energy.shape], indexing="ij"))
    return float(energy[frequencies.amax(0) > 0.25].sum() / energy.sum())


def unequal(kernel: str, bandwidth: float, between: Tensor) -> float:
    """The error of four fresh layers with batch norm half-way between the grid's rotations, over three draws."""
    grid = GRIDS["SO(2) 8"][0]
    found = []
    for seed in range(3):
        torch.manual_seed(seed)
        chain: list[nn.Module] = []
        for layer in layers("SO(2) 8", kernel, 8, 4, bandwidth):
            layer.padding_mode = "zeros"
            chain += [layer, ls.nn.BatchNorm(8, momentum=1.0), nn.ReLU()]
        net = nn.Sequential(*chain[:-1])
        net(torch.randn(16, 1, 29, 29))
        found.append(measure_equivariance(net.eval(), grid, size=29, elements=between, images=4).mean)
    return statistics.fmean(found)


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    machine = f"{platform.machine()} CPU, torch {torch.__version__}, commit {commit.stdout.strip()}"
    result: dict[str, object] = {"machine": machine, "curve": [], "moments": []}

    def keep(part: str, row: dict[str, object]) -> None:
        result[part].append(row)
        print(row, flush=True)
        Path(__file__).with_name("results").joinpath("depth.json").write_text(json.dumps(result, indent=1) + "\n")

    between = (torch.arange(4).double() + 0.5).unsqueeze(-1) * math.pi / 4
    for kernel in ("dense", "local", "pointwise"):
        for bandwidth in (0.0, 0.125, 0.25, 0.375, 0.5):
            shares = [high("SO(2) 8", kernel, bandwidth, depth) for depth in (1, 3, 6, 20)]
            keep("curve", {"kernel": kernel, "bandwidth": bandwidth, "high": shares,
                           "error": unequal(kernel, bandwidth, between)})  # fmt: skip
    for name in GRIDS:
        for kernel in KERNELS:
            shared = {"grid": name, "kernel": kernel, "bandwidth": 0.5, "high": high(name, kernel, 0.5)}
            for width in (8, 32):
                keep("moments", {**shared, "width": width, "second moment": moments(name, kernel, width, 0.5)})


if __name__ == "__main__":
    main()
