"""Small networks of every kind, for tests of how layers get on with the rest of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline import GConv, Grid, Lift, Project, SplineBasis

_Pair = tuple[SplineBasis | None, SplineBasis | None]
SO2 = ls.uniform(ls.SO2(), 8)
SCALES = ls.uniform(ls.Scale(2), 3, spacing=0.5 * math.log(2))
LINE = ls.uniform(ls.Scale(1), 3, spacing=0.5 * math.log(2))
CUBE = ls.uniform(ls.SO3(), 12)
SPHERE = ls.uniform(ls.Sphere(), 6)
FLIPS = ls.uniform(ls.O2(), 4)
ZOOMS = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 2), spacing=(None, 0.4))
SQUEEZES = ls.local(ls.GL2(), 9, (0.3, 0.4, 0.4, 1.5))
TRIVIAL = ls.uniform(ls.Trivial(2), 1)


def _near(grid: Grid, *, trainable: bool = False) -> SplineBasis:
    return SplineBasis(ls.local(grid.group, 2 * grid.group.dim + 1, grid.spacing), trainable=trainable)


def _moving(d: int) -> SplineBasis:
    return SplineBasis(ls.disc(3, d), trainable=True)


def _network(
    grid: Grid,
    h_basis: SplineBasis | None = None,
    x_bases: _Pair = (None, None),
) -> nn.Module:
    size = 3 if grid.group.space_dim == 3 else 5
    return nn.Sequential(
        Lift(2, 3, size, grid, x_basis=x_bases[0], padding="same"),
        ls.nn.BatchNorm(3),
        nn.ReLU(),
        GConv(3, 4, size, grid, x_basis=x_bases[1], h_basis=h_basis),
        Project("mean", grid),
    )


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "SO2 dense": lambda: _network(SO2),
    "SO2 local": lambda: _network(SO2, _near(SO2)),
    "SO2 deformable": lambda: _network(SO2, _near(SO2, trainable=True), (_moving(2), _moving(2))),
    "Scale 2-D": lambda: _network(SCALES),
    "Scale 1-D deformable": lambda: _network(LINE, _near(LINE, trainable=True), (_moving(1), None)),
    "SO3 local": lambda: _network(CUBE, _near(CUBE)),
    "SO3 deformable": lambda: _network(CUBE, _near(CUBE, trainable=True), (None, _moving(3))),
    "Sphere": lambda: _network(SPHERE),
    "O2 dense": lambda: _network(FLIPS),
    "O2 deformable": lambda: _network(FLIPS, SplineBasis(FLIPS, trainable=True)),
    "SIM2 local": lambda: _network(ZOOMS, _near(ZOOMS)),
    "GL2 dense": lambda: _network(SQUEEZES),
    "Trivial": lambda: _network(TRIVIAL),
}

every_network = pytest.mark.parametrize("name", NETWORKS)


def image(net: nn.Module, batch: int = 2, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return an input of the network."""
    grid: Grid = net[0].grid  # type: ignore[index]
    return torch.randn(batch, 2, *{1: (16,), 2: (14, 14), 3: (6, 6, 6)}[grid.group.space_dim], dtype=dtype)


def gradients(net: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """Return the gradient of every parameter."""
    names, parameters = zip(*net.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


def close(found: Tensor, expected: Tensor, tolerance: float = 1e-5) -> None:
    """Compare relative to the size of what is expected, or to 1 if that is larger."""
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance * max(1.0, float(expected.detach().abs().max())))
