"""`groups=` on Lift and GConv: `nn.Conv2d`'s meaning, for every group and dimension."""

from __future__ import annotations

import statistics

import pytest
import torch
from torch import nn

import liespline as ls
from cases import CASES, Case
from exported import same

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")
X64 = torch.float64
SO2 = ls.uniform(ls.SO2(), 4)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.kind}")
def test_groups_are_layers_side_by_side(case: Case) -> None:
    """Against one layer without groups for each group of channels, which others compare with naive loops."""
    space = (6, 5, 4)[: case.d]

    def lift(c: int, o: int, g: int) -> nn.Module:
        return ls.Lift(c, o, 3, case.grid, x_basis=case.x_basis(), padding=1, groups=g)

    def gconv(c: int, o: int, g: int) -> nn.Module:
        return ls.GConv(c, o, 3, case.grid, x_basis=case.x_basis(), h_basis=case.h_basis(), padding=1, groups=g)

    for make, axes in ((lift, ()), (gconv, (len(case.grid),))):
        whole, parts = make(4, 6, 2).double(), [make(2, 3, 1).double() for _ in range(2)]
        assert whole.weight.shape[:2] == (6, 2)
        nn.init.normal_(whole.bias)
        for i, part in enumerate(parts):
            state = whole.state_dict()
            chunk = {key: state[key].chunk(2)[i] for key in ("weight", "bias")}
            part.load_state_dict(state | chunk)
        x = torch.randn(2, 4, *axes, *space, dtype=X64)
        expected = torch.cat([part(half) for part, half in zip(parts, x.chunk(2, 1), strict=True)], 1)
        assert (whole(x) - expected).abs().max() < 1e-12 * expected.abs().max()


@pytest.mark.parametrize("options", [{"stride": 2}, {"padding": "same", "padding_mode": "circular"}, {"bias": False}])
def test_options_and_export(options: dict) -> None:
    net = nn.Sequential(
        ls.Lift(2, 4, 5, SO2, groups=2, **options),
        ls.nn.NormReLU(4),
        ls.GConv(4, 8, 3, SO2, groups=4, **options),
        nn.BatchNorm3d(8),
        ls.Project("max", SO2),
    )
    plain = same(net, torch.randn(2, 2, 19, 20))
    assert [m.groups for m in plain.modules() if isinstance(m, nn.Conv2d)] == [2, 4]


def test_functions_on_the_group_alone() -> None:
    grid = ls.uniform(ls.SO3(), 12)
    layer = ls.GConv(4, 6, None, grid, groups=2)
    x = torch.randn(3, 4, 12)
    halves = [ls.GConv(2, 3, None, grid, bias=False) for _ in range(2)]
    for half, weight in zip(halves, layer.weight.chunk(2), strict=True):
        half.weight = nn.Parameter(weight.detach())
    expected = torch.cat([half(part) for half, part in zip(halves, x.chunk(2, 1), strict=True)], 1)
    assert (layer(x) - expected).abs().max() < 1e-5
    same(nn.Sequential(layer, nn.ReLU()), x)


@pytest.mark.parametrize("groups", [2, 8, 32])
def test_activations_keep_their_size(groups: int) -> None:
    """In the mean over draws, as without groups. A chain of depthwise layers alone would lose channels to ReLU."""

    def moment(groups: int) -> float:
        found = []
        for seed in range(20):
            torch.manual_seed(seed)
            x = torch.randn(2, 32, 4, 9, 9).relu()
            layer = ls.GConv(32, 32, 5, SO2, padding="same", padding_mode="circular", groups=groups)
            found.append(float(layer(x).detach().square().mean()))
        return statistics.mean(found)

    assert 0.8 < moment(groups) / moment(1) < 1.25


def test_gradients_autocast_and_compilation() -> None:
    layer = ls.GConv(4, 4, 5, SO2, padding=2, groups=2)
    x = torch.randn(2, 4, 4, 9, 9)
    layer(x).square().mean().backward()
    assert layer.weight.grad is not None
    assert bool(layer.weight.grad.abs().sum() > 0)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    assert (compiled(x) - layer(x)).abs().max() < 1e-5
    torch.compiler.reset()
    assert "groups=2" in repr(layer)


@pytest.mark.parametrize("groups", [3, 0])
def test_groups_divide_the_channels(groups: int) -> None:
    with pytest.raises(ValueError, match=f"GConv: groups = {groups}, must"):
        ls.GConv(4, 6, 5, SO2, groups=groups)
