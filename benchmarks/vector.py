"""How well vectors read off H rotate between the grid's elements: untrained networks, by grid and activation.

    python benchmarks/vector.py benchmarks/results/vector.json

Inputs are Gaussian blobs evaluated at rotated points, so nothing is interpolated; a lifting layer, an activation, a
group correlation and `Project("vector")`; the vectors at the centre are compared with those of upright blobs, rotated.
The number is the largest relative error over random rotations and three draws of the parameters (volumes: one).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import liespline as ls
from liespline import Grid

ACTIVATIONS = {"none": nn.Identity, "SiLU": nn.SiLU, "GELU": nn.GELU, "ReLU": nn.ReLU}
BLOBS, IMAGES, WIDTH = 12, 6, 2.5
PLANE, SPACE = (4, 6, 8, 12, 16, 24), (12, 24, 60)


def network(grid: Grid, window: int, activation: str, seed: int) -> nn.Module:
    """The smallest network with a vector head that is not linear."""
    torch.manual_seed(seed)
    lift, conv = ls.Lift(1, 4, window, grid, padding="same"), ls.GConv(4, 3, window, grid, padding="same")
    return nn.Sequential(lift, ACTIVATIONS[activation](), conv, ls.Project("vector", grid)).double()


@torch.no_grad()
def error(grid: Grid, window: int, activation: str, seed: int, turns: int) -> float:
    """The largest ‖v(h·f) − h v(f)‖ / ‖v(f)‖ at the centre, over random turns h."""
    net, group, d = network(grid, window, activation, seed), grid.group, grid.group.space_dim
    size = 2 * window - 1  # what both layers together see
    torch.manual_seed(1)
    means = 3 * torch.randn(IMAGES * BLOBS, d, dtype=torch.float64)
    heights = torch.randn(IMAGES, BLOBS, dtype=torch.float64)
    points = torch.cartesian_prod(*[torch.arange(size, dtype=torch.float64) - (size - 1) / 2] * d)

    def vectors(where: Tensor) -> Tensor:
        square = torch.cdist(where, means).square().view(-1, IMAGES, BLOBS)
        images = (heights * (-square / (2 * WIDTH**2)).exp()).sum(-1).T
        found: Tensor = net(images.reshape(IMAGES, 1, *[size] * d))
        return found.flatten(3)[..., size**d // 2]

    still, largest = vectors(points), 0.0
    for _ in range(turns):
        h = group.exp(torch.randn(group.dim, dtype=torch.float64))
        rotated = still @ group.matrix(h).T
        largest = max(largest, float((vectors(group.pull(h, points)) - rotated).norm() / rotated.norm()))
    return largest


def main(out: Path) -> None:
    """Print the table of the guide and keep its numbers."""
    cases = [(f"{n} angles", ls.uniform(ls.SO2(), n), 7, 3, 6) for n in PLANE]
    cases += [(f"{n} rotations", ls.uniform(ls.SO3(), n), 5, 1, 4) for n in SPACE]
    found: dict[str, dict[str, float]] = {}
    print(f"| elements | {' | '.join(ACTIVATIONS)} |\n|{'---|' * (len(ACTIVATIONS) + 1)}")
    for name, grid, window, seeds, turns in cases:
        found[name] = {
            activation: max(error(grid, window, activation, seed, turns) for seed in range(seeds))
            for activation in ACTIVATIONS
        }
        print(f"| {name} | {' | '.join(f'{value:.1e}' for value in found[name].values())} |", flush=True)
        out.write_text(json.dumps({"torch": torch.__version__, "errors": found}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
