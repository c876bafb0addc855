"""Measure every group: equivariance, cost against SO(2) at equal N_h, and GL(2)'s error against its elements.

`python benchmarks/groups.py` writes results/groups.json and prints the table of docs/guide/groups.md.
"""

from __future__ import annotations

import json
import math
import platform
import subprocess
import warnings
from pathlib import Path

import torch

import liespline as ls
import timing
from moved import error

STEP = 0.5 * math.log(2)
EIGHTH = math.pi / 4
SIM2 = ls.Product(ls.SO2(), ls.Scale(2))
SL2 = ls.MatrixGroup([[[1, 0], [0, -1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]]])


def vector(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def near(grid: ls.Grid, n: int | tuple[int, ...] = 1, degree: int = 2) -> ls.SplineBasis:
    return ls.SplineBasis(ls.local(grid.group, n, grid.spacing), degree=degree)


def rows() -> list[dict[str, object]]:
    """Return one entry per group: the largest of its errors over the moves named."""
    found = []

    def row(
        name: str, code: str, moves: str, grid: ls.Grid, elements: list[torch.Tensor], k: int = 5, timed=None, **given
    ) -> None:  # fmt: skip
        results = [error(grid, g, k, **given) for g in elements]
        entry = {
            "group": name,
            "code": code,
            "elements": len(grid),
            "window": k,
            "moves": moves,
            "lift": max(lift for lift, _ in results),
            "both": max(both for _, both in results),
            "cost": cost(timed or grid, given.get("h_basis")),
            "timed elements": len(timed or grid),
        }
        print(entry, flush=True)
        found.append(entry)

    turns = ls.uniform(ls.SO2(), 8)
    row("SO(2)", "uniform(SO2(), 8)", "turns by 22.5° and 45°", turns, [vector(EIGHTH / 2), vector(EIGHTH)])
    flips = ls.uniform(ls.O2(), 16)
    mirrors = [vector(EIGHTH, -1), vector(3 * EIGHTH, -1)]
    row("O(2)", "uniform(O2(), 16)", "flips about axes at 22.5°", flips, mirrors)
    row("O(2)", "uniform(O2(), 16)", "flips about axes at 22.5°", flips, mirrors, k=7)
    scales = ls.uniform(ls.Scale(2), 5, spacing=STEP)
    middle = scales.elements[2:4]
    row("R⁺", "uniform(Scale(2), 5, spacing=STEP)", "zooms by √2", scales, [vector(math.sqrt(2))], at=middle,
        h_basis=near(scales, 3, 1), nets=6, blur=3.0)  # fmt: skip
    both = ls.uniform(SIM2, (8, 4), spacing=(None, STEP))
    at = both.elements[(both.elements[:, 1] > 1.9) & (both.elements[:, 1] < 2.1)]
    moves = [vector(EIGHTH, 1), vector(0, math.sqrt(2)), vector(EIGHTH, math.sqrt(2))]
    row("SIM(2)'s H", "uniform(Product(SO2(), Scale(2)), (8, 4), spacing=(None, STEP))", "turn, zoom by √2, both", both,
        moves, at=at, h_basis=near(both, (3, 3), 1), nets=6, blur=3.0)  # fmt: skip
    cube = ls.uniform(ls.SO3(), 24)
    turn = ls.SO3().exp(vector(0.2, 0.2, 0.2))
    row("SO(3)", "uniform(SO3(), 24)", "turn by 20°", cube, [turn], at=cube.elements[:2], nets=6)
    full = ls.uniform(ls.O3(), 48)
    row("O(3)", "uniform(O3(), 48)", "turn by 20° and mirror", full, [-turn], at=full.elements[[0, 25]], nets=6)
    grid = plane(0.3, 1, 8)
    row("GL(2)", "local(GL2(), (1, 5, 5, 8), (1, 0.3, 0.3, TURN))", "shear and squeezes of one step", grid,
        MOVES, at=torch.eye(2).double()[None], h_basis=near(grid), nets=6,
        timed=ls.local(ls.GL2(), (1, 3, 3, 4), (1.0, 0.3, 0.3, 2 * EIGHTH)))  # fmt: skip
    squeezes = ls.local(SL2, (5, 5, 5), 0.25)
    row("SL(2)", "local(MatrixGroup(SL2), (5, 5, 5), 0.25)", "shear and squeeze of one step", squeezes,
        [SL2.exp(vector(0.25, 0, 0)), SL2.exp(vector(0, 0.25, 0))], at=torch.eye(2).double()[None],
        h_basis=near(squeezes), nets=6, timed=ls.local(SL2, (3, 3, 3), 0.25))  # fmt: skip
    return found


def plane(width: float, fineness: int, turns: int) -> ls.Grid:
    """A grid of GL(2) about the identity, as far as kernels of that width reach when they are transformed by 0.3.

    Its elements have determinant 1: zooms do not mix with shears, squeezes and turns.
    """
    step = width / fineness
    n = 2 * math.ceil((1.5 * width + 0.3) / step - 1e-9) - 1
    return ls.local(ls.GL2(), (1, n, n, turns), (1.0, step, step, 2 * math.pi / turns))


SHEAR = torch.tensor([[1.0, math.sqrt(2) * 0.3], [0.0, 1.0]], dtype=torch.float64)
MOVES = [ls.GL2().exp(vector(0, 0.3, 0, 0)), ls.GL2().exp(vector(0, 0, 0.3, 0)), SHEAR]


def curve() -> list[dict[str, float]]:
    """Return GL(2)'s error against the number of elements, for one kernel on ever finer grids."""
    basis = ls.SplineBasis(ls.local(ls.GL2(), 1, (1.0, 0.6, 0.6, 2 * EIGHTH)), degree=2)
    found = []
    for fineness in (1, 2, 3):
        grid = plane(0.6, fineness, 4 * fineness)
        results = [error(grid, g, 5, at=torch.eye(2).double()[None], h_basis=basis, nets=4) for g in MOVES]
        found.append(
            {
                "elements": len(grid),
                "lift": max(lift for lift, _ in results),
                "squeeze": results[0][1],
                "diagonal squeeze": results[1][1],
                "shear": results[2][1],
            }
        )
        print(found[-1], flush=True)
    return found


def cost(grid: ls.Grid, h_basis: ls.SplineBasis | None) -> float | None:
    """Return the time of one layer, forward and backward, against SO(2) with as many elements and splines on H."""
    turns = ls.uniform(ls.SO2(), len(grid))
    n_k = len(grid) if h_basis is None else len(h_basis)
    own = ls.SplineBasis(ls.local(ls.SO2(), n_k, turns.spacing)) if h_basis is not None else None
    d = grid.group.space_dim
    if d == 3:
        return None  # SO(2) has no volumes to be compared on
    x = torch.randn(4, 8, len(grid), 32, 32)
    steps = {}
    for name, g, basis in (("own", grid, h_basis), ("turns", turns, own)):
        layer = ls.GConv(8, 8, 5, g, h_basis=basis, padding=2)
        steps[name] = lambda layer=layer: layer(x).sum().backward()
    seconds = timing.times(steps, "cpu")
    return seconds["own"] / seconds["turns"]


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    machine = f"{platform.machine()} CPU, torch {torch.__version__}, commit {commit.stdout.strip()}"
    result = {"machine": machine, "groups": rows(), "gl2": curve()}
    Path(__file__).with_name("results").joinpath("groups.json").write_text(json.dumps(result, indent=1) + "\n")
    print("| group | grid | elements | window | transformed by | lift | lift → ReLU → g-corr | time against SO(2) |")
    for r in result["groups"]:
        size = f"{r['window']}×{r['window']}"
        paid = "–" if r["cost"] is None else f"{r['cost']:.1f}"
        print(f"| {r['group']} | `{r['code']}` | {r['elements']} | {size} | {r['moves']} | {r['lift']:.1e} | "
              f"{r['both']:.1e} | {paid} |")  # fmt: skip


if __name__ == "__main__":
    main()
