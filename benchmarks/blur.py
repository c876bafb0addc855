"""Layers whose centres keep their lattice: blurred once, against the direct path of this tree and the dense kernel.

    python benchmarks/blur.py [result.json] [--small]

On a GPU the SE(3) layer with 24 rotations, 16 channels and 24³, forward and backward, in bfloat16 and float32,
replayed as CUDA graphs; on one CPU core a dozen shapes in two and three dimensions, in float32.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

import liespline as ls
from layers import Bench
from liespline.models.kernels import h_basis
from timing import Row, Step, report, times

TURNS, BOTH, CUBE = ls.uniform(ls.SO2(), 4), ls.uniform(ls.O2(), 8), ls.uniform(ls.SO3(), 24)
PLAIN = {d: ls.uniform(ls.Trivial(d), 1) for d in (2, 3)}
# grid, channels in and out, window, splines on H (0: a lifting; None: all), batch, side
CPU = [
    (TURNS, 4, 4, 5, None, 4, 28), (TURNS, 16, 16, 5, None, 2, 32), (TURNS, 16, 16, 5, 3, 2, 32),
    (TURNS, 10, 10, 7, None, 8, 14), (BOTH, 32, 32, 5, 3, 1, 48), (PLAIN[2], 16, 16, 5, None, 4, 64),
    (TURNS, 3, 16, 5, 0, 4, 96), (BOTH, 3, 16, 7, 0, 2, 64), (CUBE, 4, 4, 5, None, 1, 10), (CUBE, 4, 4, 5, 7, 2, 16),
    (CUBE, 3, 4, 5, 0, 2, 12), (PLAIN[3], 16, 16, 5, None, 1, 24),
]  # fmt: skip
GPU = [(CUBE, 16, 16, 5, 7, 8, 24), (CUBE, 16, 16, 5, None, 8, 24), (CUBE, 1, 16, 5, 0, 8, 24)]
SMALL = [(CUBE, 2, 2, 5, 7, 1, 6), (CUBE, 2, 2, 5, None, 1, 6), (CUBE, 1, 2, 5, 0, 1, 6)]


def measured(shape: tuple, device: str, dtype: torch.dtype) -> Row:
    """The time of a blurred layer over what was chosen for it before, with that of the dense kernel beside them."""
    grid, inputs, outputs, window, n_k, batch, side = shape
    torch.manual_seed(0)
    bench, d = Bench(device, dtype, batch, side), grid.group.space_dim
    if n_k == 0:
        layer = ls.Lift(inputs, outputs, window, grid, padding="same", bias=False, device=device)
        first = second = torch.randn(batch, inputs, *(side,) * d, device=device, dtype=dtype)
    else:
        basis = h_basis(grid, "local" if n_k else "dense", n_k)
        layer = ls.GConv(inputs, outputs, window, grid, h_basis=basis, padding="same", bias=False, device=device)
        first = bench.input(layer, side, banded=False)
        # Fields innermost, as our own kernels for GPUs read them; for dense kernels as cuDNN does.
        second = first if n_k is None else _fields_inside(first)
    blurred = layer.plan
    direct = replace(blurred, blur=None, centres=None)

    def by(plan: ls.ops.Plan, path: str, x: torch.Tensor) -> Step:
        def compute() -> torch.Tensor:
            layer.plan = plan
            return layer(x)

        return bench.repeat(compute, (x, layer.weight) if n_k != 0 else (layer.weight,), path)

    steps = {
        "dense": by(direct, "dense", first),
        "direct": by(direct, "auto", second),
        "blurred": by(blurred, "blurred", second),
        "chosen": by(blurred, "auto", second),
    }
    found = times(steps, device)
    kind = "lifting" if n_k == 0 else f"N_k = {n_k or len(grid)}"
    what = f"{grid.group!r} {len(grid)}, {kind}, {inputs} to {outputs} channels, {window}, {batch} × {side}"
    shown = ", ".join(f"{name} {1e3 * seconds:.2f} ms" for name, seconds in found.items())
    ratio, of_dense = found["blurred"] / found["direct"], found["blurred"] / found["dense"]
    print(f"{ratio:5.2f}  {of_dense:5.2f} of dense  {what}  {shown}", flush=True)
    return Row(f"{what}, {str(dtype)[6:]}: blurred / direct", ratio, "", shown)


def _fields_inside(x: torch.Tensor) -> torch.Tensor:
    if not x.is_cuda:
        return x
    return x.detach().movedim((2, 1), (-2, -1)).contiguous().movedim((-2, -1), (2, 1)).requires_grad_()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", default="benchmarks/results/blur.json")
    parser.add_argument("--small", action="store_true", help="shapes that only show that everything runs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtypes = (torch.bfloat16, torch.float32) if device == "cuda" or given.small else (torch.float32,)
    shapes = SMALL if given.small else GPU if device == "cuda" else CPU
    report([measured(shape, device, dtype) for shape in shapes for dtype in dtypes], device, given.out)
