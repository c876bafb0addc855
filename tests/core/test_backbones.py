"""The ready-made networks: exact symmetries at every size, any group and dimension, export, budgets."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

import liespline as ls
from exported import change, distance, quarter_turn, settled, stirred
from liespline import models
from liespline.models.kit import Kit
from liespline.nn import Downsample, FieldDropout

TURNS = ls.uniform(ls.SO2(), 4)
SMALL: dict[str, Callable[..., nn.Module]] = {
    "classifier": lambda grid, **k: models.classifier(2, 3, grid, **{"widths": (3, 4, 4, 5, 4, 12)} | k),
    "resnet": lambda grid, **k: models.resnet(2, 3, grid, **{"widths": (3, 3, 4, 12)} | k),
    "unet": lambda grid, **k: models.unet(2, 3, grid, **{"widths": (3, 4, 5)} | k),
}
every_model = pytest.mark.parametrize("name", SMALL)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def small(name: str, grid: ls.Grid = TURNS, **options: object) -> nn.Module:
    return settled(SMALL[name](grid, **options), 2, 28, 28)


@every_model
@pytest.mark.parametrize("separable", [False, True])
def test_quarter_turns_at_every_size(name: str, separable: bool) -> None:
    net = small(name, separable=separable)
    for size in range(28, 65):
        x = torch.randn(4, 2, size, size)
        assert change(net, x, quarter_turn) <= 1e-4


@every_model
@pytest.mark.parametrize("shape", [(8, 8), (9, 9), (13, 13), (28, 33), (100, 37)])
def test_half_turns_at_small_and_oblong_sizes(name: str, shape: tuple[int, int]) -> None:
    assert change(small(name), torch.randn(4, 2, *shape), lambda t: t.flip(-2, -1)) <= 1e-4


@every_model
def test_off_centre_halving_would_show(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: samples 0, 2, 4, … of even sizes too."""
    monkeypatch.setattr(Downsample, "space", lambda self, x: x[:, :, ::2, ::2])
    assert change(small(name), torch.randn(2, 2, 28, 28), quarter_turn) > 1e-2


GRIDS = {
    "Trivial(1)": (ls.uniform(ls.Trivial(1), 1), (21,)),
    "Scale(1)": (ls.uniform(ls.Scale(1), 2, spacing=0.5 * math.log(2)), (24,)),
    "Trivial(2)": (ls.uniform(ls.Trivial(2), 1), (17, 20)),
    "Scale(2)": (ls.uniform(ls.Scale(2), 2, spacing=0.5 * math.log(2)), (17, 20)),
    "Trivial(3)": (ls.uniform(ls.Trivial(3), 1), (9, 8, 10)),
    "SO3": (ls.uniform(ls.SO3(), 12), (9, 8, 10)),
    "Sphere": (ls.uniform(ls.Sphere(), 6), (8, 8, 8)),
}


@every_model
@pytest.mark.parametrize("grid", GRIDS)
def test_every_group_and_dimension_trains_and_exports(name: str, grid: str) -> None:
    elements, shape = GRIDS[grid]
    net = SMALL[name](elements, kernel="local" if grid == "SO3" else "dense")
    x = torch.randn(2, 2, *shape)
    out = net(x)
    assert out.shape == (2, 3) if name != "unet" else (2, 3, *shape)
    out.square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    assert distance(stirred(net), ls.export(net), x) < 1e-5


def test_all_24_rotations_of_the_cube_move_what_a_unet_draws() -> None:
    grid = ls.uniform(ls.SO3(), 24)
    net = settled(models.unet(1, 2, grid, widths=(2, 2), kernel="local"), 1, 8, 8, 8).double()
    x = torch.randn(2, 1, 8, 8, 8, dtype=torch.float64)
    for h in grid.elements[[5, 13, 22]]:
        axes = h.abs().argmax(1)
        flips = [2 + i for i in range(3) if h[i, axes[i]] < 0]
        assert change(net, x, lambda t, axes=axes, f=flips: t.permute(0, 1, *(2 + axes).tolist()).flip(f)) < 1e-10


@every_model
@pytest.mark.parametrize(
    "options", [{}, {"kernel": "local"}, {"kernel": "deformable"}, {"features": True}, {"separable": True}], ids=str
)
@pytest.mark.parametrize("grid", ["SO2", "Scale(2)", "SO3"])
def test_what_is_counted_is_what_is_built(name: str, options: dict, grid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "classifier" and "features" in options:
        options = {"stride": 2}
    elements = {"SO2": TURNS, "Scale(2)": GRIDS["Scale(2)"][0], "SO3": GRIDS["SO3"][0]}[grid]
    kits: list[Kit] = []
    init = Kit.__init__
    monkeypatch.setattr(Kit, "__init__", lambda self, *a, **k: kits.append(self) or init(self, *a, **k))
    net = SMALL[name](elements, **options)
    assert [kit.parameters for kit in kits] == [sum(p.numel() for p in net.parameters())]


@every_model
@pytest.mark.parametrize("target", [30_000, 300_000])
def test_widths_follow_from_a_budget(name: str, target: int) -> None:
    for grid in (ls.uniform(ls.Trivial(2), 1), ls.uniform(ls.SO2(), 8)):
        net = getattr(models, name)(1, 10, grid, parameters=target)
        assert sum(p.numel() for p in net.parameters()) == pytest.approx(target, rel=0.15)


def test_the_pyramid_is_one_feature_map_per_stage() -> None:
    net = models.resnet(2, 3, TURNS, widths=(3, 3, 4, 5), features=True)
    shapes = [tuple(f.shape) for f in net(torch.randn(2, 2, 29, 32))]
    assert shapes == [(2, 3, 4, 15, 16), (2, 4, 4, 8, 8), (2, 5, 4, 4, 4)]
    assert models.unet(2, 3, TURNS, widths=(3, 4), features=True)(torch.randn(1, 2, 9, 9)).shape == (1, 3, 4, 9, 9)


def test_field_dropout_drops_whole_fields_in_training_only() -> None:
    layer, x = FieldDropout(0.4), torch.ones(400, 5, 3, 4, 4)
    fields = layer(x).flatten(2)
    assert (fields == fields[..., :1]).all()
    assert fields.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert float((fields[..., 0] == 0).double().mean()) == pytest.approx(0.4, abs=0.05)
    assert layer.eval()(x) is x
    with pytest.raises(ValueError, match=r"p = 1\.5"):
        FieldDropout(1.5)
    net = models.resnet(2, 3, TURNS, widths=(3, 4), field_dropout=0.2)
    assert sum(isinstance(m, FieldDropout) for m in net.modules()) == 2


@every_model
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.:FutureWarning")
def test_torch_export_of_any_batch(name: str) -> None:
    net = ls.export(small(name, separable=True))
    x = torch.randn(3, 2, 22, 25)
    batch = torch.export.Dim("batch", min=2)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: batch},))
    y = torch.randn(5, 2, 22, 25)
    assert (program.module()(y) - net(y)).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: models.resnet(1, 2, TURNS, widths=()), r"resnet: widths = \(\)"),
        (lambda: models.unet(1, 2, TURNS, widths=(3, 0)), r"unet: widths = \(3, 0\)"),
        (lambda: models.resnet(1, 2, TURNS, kernel="fuzzy"), "fuzzy"),
    ],
)
def test_errors_repeat_the_value(call: Callable[[], object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
