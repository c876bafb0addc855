"""Is the path that is chosen the fastest? `python benchmarks/chosen.py [benchmarks/results/chosen.json]`.

Sixty layers in 1-D, 2-D and 3-D, forward and backward on one thread of a CPU, each by every path that differs; ratios
of medians that take turns, in a few minutes. Paths have the names by which `liespline.ops.use` forces them.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch

import liespline as ls
from liespline import ops
from liespline.models.kernels import h_basis
from liespline.ops import choose
from liespline.ops.path import Choice
from timing import Row, report, times

PATHS = ("dense", "fourier", "banded", "separable", "blurred")
REACH = 1.15
GRIDS: dict[str, Callable[[int], ls.Grid]] = {
    "scale 1-D": lambda n: ls.uniform(ls.Scale(1), n, spacing=0.5 * math.log(2)),
    "SO(2)": lambda n: ls.uniform(ls.SO2(), n),
    "scale 2-D": lambda n: ls.uniform(ls.Scale(2), n, spacing=0.5 * math.log(2)),
    "SO(3)": lambda n: ls.uniform(ls.SO3(), n),
    "scale 3-D": lambda n: ls.uniform(ls.Scale(3), n, spacing=0.25 * math.log(2)),
}


class Shape(NamedTuple):
    """A group correlation: channels in and out, and the side of its image."""

    group: str
    elements: int
    kernel: str
    n_k: int | None
    channels: int
    window: int
    batch: int
    side: int

    def layer(self) -> tuple[ls.GConv, torch.Tensor]:
        """The layer and an input."""
        grid = GRIDS[self.group](self.elements)
        basis = h_basis(grid, self.kernel, self.n_k)
        layer = ls.GConv(self.channels, self.channels, self.window, grid, h_basis=basis, padding="same")
        space = (self.side,) * grid.group.space_dim
        return layer, torch.randn(self.batch, self.channels, len(grid), *space, requires_grad=True)

    def __str__(self) -> str:
        kind = self.kernel if self.n_k is None else f"{self.kernel} {self.n_k}"
        size = f"{self.batch} images of side {self.side}"
        return f"{self.group} {self.elements}, {kind}, {self.channels} channels, window {self.window}, {size}"


SHAPES = [
    *(Shape("scale 1-D", n, kernel, n_k, c, w, b, side)
      for n, kernel, n_k in ((3, "dense", None), (5, "local", 3), (8, "local", 3), (8, "dense", None))
      for c, w, b, side in ((4, 5, 8, 64), (16, 5, 8, 128), (32, 9, 4, 256), (8, 9, 32, 64), (24, 3, 4, 200))),
    *(Shape("SO(2)", n, kernel, n_k, c, w, b, side)
      for n, kernel, n_k in ((4, "dense", None), (8, "local", 3), (16, "local", 3), (8, "dense", 4))
      for c, w, b, side in ((4, 5, 4, 28), (16, 5, 2, 32), (10, 7, 8, 14))),
    *(Shape("scale 2-D", n, kernel, n_k, c, w, b, side)
      for n, kernel, n_k in ((3, "dense", None), (5, "local", 3))
      for c, w, b, side in ((4, 5, 4, 28), (16, 5, 1, 32), (8, 3, 2, 40), (6, 7, 2, 24))),
    *(Shape("SO(3)", n, kernel, n_k, c, w, b, side)
      for n, kernel, n_k in ((12, "local", 7), (24, "local", 7), (24, "dense", None))
      for c, w, b, side in ((4, 3, 2, 10), (8, 3, 1, 14), (4, 5, 1, 12), (12, 3, 1, 8))),
    *(Shape("scale 3-D", n, kernel, n_k, c, w, b, side)
      for n, kernel, n_k in ((3, "dense", None), (4, "local", 3))
      for c, w, b, side in ((4, 3, 2, 14), (8, 5, 1, 12), (16, 3, 1, 10), (4, 5, 2, 16))),
]  # fmt: skip


def choice(layer: ls.GConv, x: torch.Tensor, path: str) -> Choice:
    """What is done with such an input where a path is forced."""
    with ops.use(path):
        return choose.choose(x, layer.weight, layer.window.sizes, layer.stride, layer.borders.before, layer.plan)


def step(layer: ls.GConv, x: torch.Tensor, path: str) -> Callable[[], object]:
    """Forward and backward by one path."""
    wanted = (x, *layer.parameters())

    def run() -> object:
        with ops.use(path):
            return torch.autograd.grad(layer(x).sum(), wanted)

    return run


def measured(shape: Shape, seconds: float) -> Row:
    """The time of the chosen path over that of the fastest."""
    torch.manual_seed(0)
    layer, x = shape.layer()
    ways = {choice(layer, x, path): path for path in ("auto", *reversed(PATHS))}
    chosen = ways[choice(layer, x, "auto")]
    found = times({path: step(layer, x, path) for path in ways.values()}, "cpu", seconds)
    best = min(found, key=lambda path: found[path])
    shown = ", ".join(f"{path} {1e3 * found[path]:.1f} ms" for path in found)
    return Row(str(shape), found[chosen] / found[best], f"≤ {REACH}", f"{chosen} chosen; {shown}")


def rows(shapes: list[Shape], seconds: float) -> Iterator[Row]:
    """Measure every shape, and print each line when it is known."""
    for shape in shapes:
        row = measured(shape, seconds)
        print(f"{row.value:5.2f}  {row.what}  {row.note}", flush=True)
        yield row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", nargs="?", default="benchmarks/results/chosen.json")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each way to compute a layer")
    parser.add_argument("--only", default="", help="shapes whose name holds this")
    given = parser.parse_args()
    torch.set_num_threads(1)
    report(list(rows([s for s in SHAPES if given.only in str(s)], given.seconds)), "cpu", given.out)
