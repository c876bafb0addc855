"""nn.OverGrids: the mean over grids that divide a step, of networks that have the same weights."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import liespline as ls
from liespline import models
from liespline.nn import OverGrids, shift
from networks import CUBE, LINE, NETWORKS, SCALES, SO2, SPHERE, every_network, image

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")
X64 = torch.float64


def built_at(grid: ls.Grid, home: ls.Grid) -> nn.Module:
    """A network whose grid is this one, its splines on H those of the other."""
    bases = [ls.SplineBasis(home), ls.SplineBasis(home)]
    layers = [ls.GConv(2, 2, 3, grid, h_basis=basis, padding=1) for basis in bases]
    norm = nn.BatchNorm3d(2) if grid.group.space_dim == 2 else nn.Identity()
    return nn.Sequential(ls.Lift(1, 2, 3, grid, padding=1), norm, *layers, ls.Project("vector", grid)).double().eval()


@pytest.mark.parametrize("grid", [SO2, SCALES, LINE, CUBE, SPHERE, ls.uniform(ls.O2(), 4)], ids=repr)
@pytest.mark.parametrize("count", [2, 3])
def test_it_is_the_mean_of_networks_built_there(grid: ls.Grid, count: int) -> None:
    torch.manual_seed(0)
    net = built_at(grid, grid)
    group = grid.group.quotient_of or grid.group
    step = torch.full((group.dim,), grid.spacing, dtype=X64)
    x = torch.randn(2, 1, *{1: (15,), 2: (9, 10), 3: (5, 6, 5)}[grid.group.space_dim], dtype=X64)
    expected = torch.zeros_like(net(x))
    for k in range(count):
        h = group.exp(step * k / count)
        elements = group.act(h, grid.elements) if grid.group.quotient_of else group.product(h, grid.elements)
        there = built_at(ls.Grid(grid.group, elements, grid.weights, grid.spacing), grid)
        there.load_state_dict(net.state_dict())
        expected += there(x) / count
    over = OverGrids(net, count)
    assert (over(x) - expected).abs().max() < 1e-12
    assert (net(x) - expected).abs().max() > 1e-6, "one grid is not the mean of several"


def invariant() -> nn.Module:
    """Four orientations, the mean over them and over space."""
    grid = ls.uniform(ls.SO2(), 4)
    layers = (ls.Lift(1, 3, 5, grid), nn.ReLU(), ls.GConv(3, 2, 5, grid), ls.Project("mean", grid))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).double().eval()


def test_half_a_step_leaves_two_grids_as_they_are() -> None:
    """The grids change places: exact. On one grid the answer is another, which is what the second one is for."""
    torch.manual_seed(0)
    net, x = invariant(), torch.randn(2, 1, 15, 15, dtype=X64)
    over, half = OverGrids(net), torch.tensor([math.pi / 4], dtype=X64)
    one, two = net(x), over(x)
    with shift(net, half):
        assert (net(x) - one).abs().max() > 1e-4
    with shift(over, half):
        assert (over(x) - two).abs().max() < 1e-12
    assert torch.equal(over(x), two)


def test_weights_and_statistics_are_those_of_the_network() -> None:
    net = models.classifier(1, 3, SO2, widths=(4, 4)).eval()
    over = OverGrids(net, 3)
    assert sum(p.numel() for p in over.parameters()) == sum(p.numel() for p in net.parameters())
    with torch.no_grad():
        for tensor in (*net.parameters(), *(b for name, b in net.named_buffers() if "running" in name)):
            tensor.mul_(1.1)
    x = torch.randn(2, 1, 16, 16)
    assert torch.allclose(over(x), OverGrids(net, 3)(x))


@every_network
def test_it_is_exported(name: str) -> None:
    torch.manual_seed(0)
    net = NETWORKS[name]().double().eval()
    if name == "Trivial":
        with pytest.raises(ValueError, match="no layer of this Sequential has a grid"):
            OverGrids(net)
        return
    over, x = OverGrids(net), image(net, dtype=X64)
    assert (ls.export(over)(x) - over(x)).abs().max() < 1e-10


def test_a_count_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="count = 0, must be at least 1"):
        OverGrids(invariant(), 0)


def test_answers_turn_better_with_two_grids() -> None:
    """A fresh network on a smooth image, turned between its four orientations."""
    torch.manual_seed(0)
    axis = torch.linspace(-1, 1, 31, dtype=X64)
    y, x = torch.meshgrid(axis, axis, indexing="ij")

    def blob(angle: float) -> torch.Tensor:
        c, s = math.cos(angle), math.sin(angle)
        u, v = c * x + s * y, c * y - s * x
        return torch.exp(-20 * (u - 0.2) ** 2 - 4 * v**2)[None, None] * (1 + u)

    @torch.no_grad()
    def change(net: nn.Module) -> float:
        still = net(blob(0.0))
        return float(torch.stack([net(blob(a)) - still for a in (0.2, 0.5, math.pi / 4)]).norm() / still.norm())

    nets = [invariant() for _ in range(5)]
    assert sum(change(OverGrids(net)) for net in nets) < 0.5 * sum(change(net) for net in nets)
