"""Layers of single samples on finite groups: mixed by blocks of irreps, against what was chosen before.

    python benchmarks/blocks.py [result.json]

Forward and backward in float32 on one CPU core.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

import liespline as ls
from liespline import ops
from liespline.models.kernels import h_basis
from timing import Row, Step, report, times

EIGHT, SIXTEEN, BOTH = ls.uniform(ls.SO2(), 8), ls.uniform(ls.SO2(), 16), ls.uniform(ls.O2(), 24)
CUBE, BALL = ls.uniform(ls.SO3(), 24), ls.uniform(ls.SO3(), 60)
# grid, channels, splines on H (None: all), batch, side (0: functions on H alone)
SHAPES = [
    (EIGHT, 8, None, 2, 24), (EIGHT, 32, None, 2, 24), (EIGHT, 64, None, 2, 24), (EIGHT, 128, 3, 2, 24),
    (SIXTEEN, 16, None, 2, 24), (SIXTEEN, 32, None, 2, 24), (SIXTEEN, 64, None, 2, 24), (SIXTEEN, 64, 3, 2, 24),
    (SIXTEEN, 64, None, 64, 0), (BOTH, 32, None, 2, 24), (CUBE, 8, None, 1, 8), (CUBE, 16, None, 1, 8),
    (CUBE, 32, 7, 1, 12), (BALL, 16, None, 1, 8), (BALL, 32, None, 64, 0),
]  # fmt: skip


def measured(grid: ls.Grid, channels: int, n_k: int | None, batch: int, side: int) -> Row:
    """The time by blocks over that of what is chosen without them."""
    basis = None if n_k is None else h_basis(grid, "local", n_k)
    layer = ls.GConv(channels, channels, 1 if side else None, grid, h_basis=basis)
    space = (side,) * grid.group.space_dim if side else ()
    x = torch.randn(batch, channels, len(grid), *space, requires_grad=True)
    blocks = layer.plan

    def by(plan: ops.Plan, path: str) -> Step:
        def step() -> object:
            layer.plan = plan
            with ops.use(path):
                return torch.autograd.grad(layer(x).sum(), (x, *layer.parameters()))

        return step

    before = replace(blocks, waves=None, blocks=())
    found = times({"before": by(before, "auto"), "blocks": by(blocks, "blocks"), "chosen": by(blocks, "auto")}, "cpu")
    shown = ", ".join(f"{name} {1e3 * seconds:.2f} ms" for name, seconds in found.items())
    kind = f"N_k = {n_k or len(grid)}, {channels} channels, {batch} × {side or 'H alone'}"
    return Row(f"{grid.group!r} {len(grid)}, {kind}: blocks / before", found["blocks"] / found["before"], "", shown)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", default="benchmarks/results/blocks.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    report([measured(*shape) for shape in SHAPES], "cpu", given.out)
