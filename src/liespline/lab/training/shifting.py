"""Where the grids of a network stand in a step of training: anywhere within one step of the grid."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...nn import GConv, Lift, shift
from ...nn.shift import first_grid, part_of_step
from ..settings import Training


def a_shift(network: nn.Module, seed: int, amplitude: float = 1.0) -> Tensor:
    """An element h = Exp(αa), each coordinate of a uniform in half a step of the grid to either side; on the CPU.

    With amplitude α = 1, on SO(2) all angles come up alike: h·H is uniform over the circle. Drawn on the CPU by a
    seed of its own, h is the same on every process and machine.
    """
    grid, generator = first_grid(network), torch.Generator().manual_seed(seed)
    return part_of_step(grid, amplitude * (torch.rand(len(grid.steps), generator=generator, dtype=torch.float64) - 0.5))


def windows_stay(network: nn.Module, training: Training) -> bool:
    """Whether windows have the same size at every step: squeezed ones change it when the grids move."""
    if not training.grid_jitter:
        return True
    seen = set()
    for seed in range(8):
        with shift(network, a_shift(network, seed, training.grid_jitter)):
            seen.add(tuple(layer.window for layer in network.modules() if isinstance(layer, (Lift, GConv))))
    return len(seen) == 1
