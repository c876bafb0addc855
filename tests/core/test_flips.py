"""O(2): networks that flips leave as they are, like quarter turns, at every size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from exported import change, quarter_turn, settled
from liespline import models
from test_backbones import SMALL, small
from test_converting import ResNet18

FLIPS = ls.uniform(ls.O2(), 4)
MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "turn": quarter_turn,
    "flip": lambda t: t.flip(-1),
    "transpose": lambda t: t.transpose(-2, -1),
}


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("name", SMALL)
def test_models_keep_flips_at_every_size(name: str) -> None:
    """All of them in one batch: turns and flips make every symmetry of a square."""
    net = small(name, FLIPS, widths=(2, 2, 4))
    for size in range(28, 65):
        x = torch.randn(2, 2, size, size)
        moves = (lambda t: t, MOVES["turn"], MOVES["flip"])
        with torch.no_grad():
            still, *moved = net(torch.cat([move(x) for move in moves])).split(2)
        for move, found in zip(moves[1:], moved, strict=True):
            expected = move(still) if still.ndim > 2 else still
            assert (found - expected).abs().max() <= 1e-4 * (still[0] - still[1]).std(), size


def test_turns_alone_do_not_give_flips() -> None:
    net = small("classifier")
    assert change(net, torch.randn(2, 2, 28, 28), MOVES["flip"]) > 1e-2


@pytest.mark.parametrize("size", [32, 45])
def test_a_converted_resnet18_keeps_flips(size: int) -> None:
    net = settled(ls.convert(ResNet18(2), FLIPS), 3, size, size)
    assert max(change(net, torch.randn(2, 3, size, size), move) for move in MOVES.values()) <= 1e-4


def test_vectors_are_reflected() -> None:
    layers = [ls.Lift(1, 3, 5, FLIPS, padding=2), nn.ReLU(), ls.nn.SeparableGConv(3, 2, 5, FLIPS, padding=2)]
    net = nn.Sequential(*layers, ls.Project("vector", FLIPS)).double()
    x = torch.randn(1, 1, 14, 14, dtype=torch.float64)
    expected = net(x).flip(-1) * torch.tensor([1.0, -1.0], dtype=torch.float64).view(2, 1, 1)
    assert (net(x.flip(-1)) - expected).abs().max() < 1e-12


def test_turns_and_zooms_together() -> None:
    grid = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 2), spacing=(None, 0.35))
    for make in (models.classifier, models.resnet, models.unet):
        net = settled(make(1, 2, grid, widths=(2, 3)), 1, 24, 24)
        assert change(net, torch.randn(2, 1, 24, 24), MOVES["turn"]) <= 1e-4
