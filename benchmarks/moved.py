"""How equivariant lift → ReLU → g-corr is on any group: the output grid moves with the input, nothing else."""

from __future__ import annotations

import statistics

import torch
from torch import Tensor

import liespline as ls


def mixtures(count: int, d: int, size: int, blur: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return means, heights and widths of sums of 12 Gaussians."""
    generator = torch.Generator().manual_seed(seed)
    shape = (count, 12)
    means = size / 4 * torch.randn(*shape, d, dtype=torch.float64, generator=generator)
    heights = torch.randn(shape, dtype=torch.float64, generator=generator)
    return means, heights, blur * (1 + torch.rand(shape, dtype=torch.float64, generator=generator))


def image(mixture: tuple[Tensor, Tensor, Tensor], points: Tensor) -> Tensor:
    """Return the mixture at points `(*space, d)`, `(B, 1, *space)`."""
    means, heights, widths = mixture
    square = (points.reshape(-1, 1, 1, points.shape[-1]) - means).square().sum(-1)
    values = (heights * (-square / (2 * widths.square())).exp()).sum(-1)
    return values.T.reshape(len(means), 1, *points.shape[:-1])


@torch.no_grad()
def error(
    grid: ls.Grid, move: Tensor, kernel_size: int, *, at: Tensor | None = None, h_basis: ls.SplineBasis | None = None,
    nets: int = 12, blur: float = 2.0, images: int = 2,
) -> tuple[float, float]:  # fmt: skip
    """Return ‖Φ(L_g f)(h) − Φ(f)(g⁻¹h)‖ / ‖Φ(f)(g⁻¹h)‖ of the lift and of both layers, medians over random nets.

    h runs over the elements `at` (by default the grid's); Φ(f)(g⁻¹h) comes from moving the output grid alone.
    """
    group = grid.group
    out = grid.elements if at is None else at
    there = group.relative(move, out)
    one, other = (ls.Grid(group, elements, torch.ones(len(elements)), grid.spacing) for elements in (out, there))
    # Only the sample at the centre is compared: the image need be no larger than what it sees.
    lifts = [ls.Lift(1, 4, kernel_size, g, dtype=torch.float64, bias=False) for g in (one, other)]
    first = ls.Lift(1, 4, kernel_size, grid, dtype=torch.float64, bias=False)
    seconds = [
        ls.GConv(4, 4, kernel_size, grid, out_grid=g, h_basis=h_basis, dtype=torch.float64, bias=False)
        for g in (one, other)
    ]
    reach = [max(max(size) for size in layer.window.sizes) for layer in (first, *lifts, *seconds)]
    size = 2 * max(reach) - 1
    axis = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    points = torch.stack(torch.meshgrid(*[axis] * group.space_dim, indexing="ij"), -1)
    lifted, both = [], []
    for seed in range(nets):
        torch.manual_seed(seed)
        first.reset_parameters()
        seconds[0].reset_parameters()
        lifts[0].weight.copy_(first.weight)
        lifts[1].weight.copy_(first.weight)
        seconds[1].weight.copy_(seconds[0].weight)
        mixture = mixtures(images, group.space_dim, 2 * kernel_size + 1, blur, seed)
        moved, still = image(mixture, group.pull(move, points)), image(mixture, points)
        lifted.append(_apart(_centre(lifts[0](moved)), _centre(lifts[1](still))))
        hidden = [torch.relu(first(x)) for x in (moved, still)]
        both.append(_apart(_centre(seconds[0](hidden[0])), _centre(seconds[1](hidden[1]))))
    return statistics.median(lifted), statistics.median(both)


def _apart(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).norm() / expected.norm())


def _centre(out: Tensor) -> Tensor:
    for _ in range(out.ndim - 3):
        out = out[..., out.shape[-1] // 2]
    return out
