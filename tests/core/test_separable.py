"""Separable group correlations: what they compute, their symmetry, their size and their export."""

from __future__ import annotations

import statistics
from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import nn

import liespline as ls
from cases import CASES, Case
from exported import same
from liespline.nn import Depthwise, SeparableGConv

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")
X64 = torch.float64
SO2 = ls.uniform(ls.SO2(), 4)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def name(case: Case) -> str:
    return f"{case.name}-{case.kind}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_it_is_the_group_correlation_of_product_kernels(case: Case) -> None:
    """K(x, h) = k(x) M(h) through GConv, which is compared with naive loops elsewhere."""
    n = len(case.grid)
    x_basis = ls.SplineBasis(ls.disc(3, case.d))
    fixed = case.h_basis()
    h_basis = ls.SplineBasis(fixed.grid, scale=fixed.scale, degree=fixed.degree)
    options = {"x_basis": x_basis, "h_basis": h_basis, "padding": 1}
    layer = SeparableGConv(2, 3, 3, case.grid, **options).double()
    whole = ls.GConv(2, 3, 3, case.grid, **options).double()
    mix, filters = layer
    at_zero = ls.bspline(torch.zeros(1, dtype=X64), 3) ** case.d  # the single spline of a 1-sample window, there
    with torch.no_grad():
        nn.init.normal_(filters.bias)
        whole.bias.copy_(filters.bias)
        whole.weight.copy_(at_zero * torch.einsum("ox,oij->oixj", filters.weight[:, 0], mix.weight[:, :, 0]))
    x = torch.randn(2, 2, n, *(6, 5, 4)[: case.d], dtype=X64)
    found, expected = layer(x), whole(x)
    # On S² kernels are made symmetric as a product of two; here each factor is by itself.
    if case.name == "Sphere":
        assert found.shape == expected.shape
    else:
        assert (found - expected).abs().max() < 1e-12 * expected.abs().max()


@pytest.mark.parametrize("options", [{"stride": 2, "padding": 1}, {"padding": "same", "padding_mode": "reflect"}, {}])
@pytest.mark.parametrize("grid", [SO2, ls.uniform(ls.Scale(2), 2, spacing=0.4)], ids=repr)
def test_depthwise_is_each_elements_own_lifting(grid: ls.Grid, options: dict) -> None:
    layer = Depthwise(2, 5, grid, **options).double()
    lift = ls.Lift(1, 1, 5, grid, bias=False, **options).double()
    x = torch.randn(2, 2, len(grid), 11, 13, dtype=X64)
    found = layer(x)
    for c in range(2):
        with torch.no_grad():
            lift.weight.copy_(layer.weight[c : c + 1])
        for a in range(len(grid)):
            assert (found[:, c, a] - lift(x[:, c : c + 1, a])[:, 0, a] - layer.bias[c]).abs().max() < 1e-12


def test_quarter_turns_are_exact_and_a_wrong_order_of_elements_is_not() -> None:
    layer = nn.Sequential(ls.Lift(1, 3, 5, SO2, padding=2), nn.ReLU(), SeparableGConv(3, 4, 5, SO2, padding=2)).double()
    x = torch.randn(2, 1, 12, 12, dtype=X64)
    still, turned = layer(x), layer(torch.rot90(x, 1, (-2, -1)))
    expected = torch.rot90(still, 1, (-2, -1))
    assert (turned - expected.roll(1, 2)).abs().max() < 1e-12
    assert (turned - expected).abs().max() > 1e-2


def growth(grid: ls.Grid, seed: int) -> float:
    """Standard deviation after ten layers and ReLUs, over the input's."""
    torch.manual_seed(seed)
    c, d = 32, grid.group.space_dim
    x = torch.randn(2, c, len(grid), *[9 if d == 2 else 6] * d)
    before = x.std()
    for _ in range(10):
        layer = SeparableGConv(c, c, 5, grid, padding="same", padding_mode="circular")
        x = torch.relu(layer(x)).detach()
    return float(x.std() / before)


@pytest.mark.parametrize("grid", [SO2, ls.uniform(ls.SO2(), 8), ls.uniform(ls.SO3(), 12)], ids=repr)
def test_ten_layers_keep_the_size_of_activations(grid: ls.Grid) -> None:
    assert 0.5 < statistics.median(growth(grid, seed) for seed in range(5)) < 2


def test_filters_drawn_for_themselves_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: both layers as if a ReLU followed each."""
    monkeypatch.setattr(SeparableGConv, "_fill_filters", lambda self: None)
    assert not 0.5 < statistics.median(growth(SO2, seed) for seed in range(3)) < 2


def test_coefficients_drawn_anew_are_as_large_as_those_of_a_new_layer() -> None:
    def deviation(layer: SeparableGConv, part: int) -> float:
        return float(layer[part].weight.detach().std())

    for grid in (SO2, ls.uniform(ls.SO2(), 8)):
        for seed in range(3):
            torch.manual_seed(seed)
            fresh, again = (SeparableGConv(48, 64, 5, grid, padding=2) for _ in range(2))
            before = again[1].weight.detach().clone()
            again.reset_parameters()
            assert not torch.equal(again[1].weight, before)
            for part in (0, 1):
                assert deviation(again, part) == pytest.approx(deviation(fresh, part), rel=0.15)


def test_it_learns_fewer_numbers_and_every_one_of_them() -> None:
    layer = SeparableGConv(4, 6, 5, SO2)
    assert sum(p.numel() for p in layer.parameters()) == 4 * 6 * 4 + 6 * 9 + 6
    layer(torch.randn(2, 4, 4, 9, 9)).square().sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in layer.parameters())


def test_trainable_centres_and_half_precision() -> None:
    basis = ls.SplineBasis(ls.disc(3), trainable=True)
    layer = SeparableGConv(2, 2, 5, SO2, x_basis=basis, padding=2)
    x = torch.randn(1, 2, 4, 9, 9)
    layer(x).square().sum().backward()
    assert layer[1].x_centres.grad.abs().sum() > 0
    with torch.autocast("cpu", torch.bfloat16):
        assert (layer(x).float() - layer(x)).abs().max() < 0.1
    with pytest.raises(ValueError, match=r"Depthwise: x has shape \(1, 3, 4, 9, 9\)"):
        layer[1](torch.randn(1, 3, 4, 9, 9))


@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.:FutureWarning")
@pytest.mark.parametrize("mode", ["zeros", "circular"])
def test_export_and_onnx(mode: str, tmp_path: Path) -> None:
    net = nn.Sequential(
        *(ls.Lift(1, 3, 5, SO2, padding=2), ls.nn.BatchNorm(3), nn.ReLU()),
        *(SeparableGConv(3, 4, 5, SO2, padding="same", padding_mode=mode), ls.nn.NormReLU(4)),
        *(SeparableGConv(4, 2, 4, SO2, stride=2, padding=1), ls.Project("max", SO2)),
    )
    x = torch.randn(2, 1, 14, 15)
    plain = same(net, x)
    assert not any(isinstance(m, Depthwise) for m in plain.modules())
    batch = ({0: torch.export.Dim("batch")},)
    file = tmp_path / "net.onnx"
    torch.onnx.export(plain, (x,), file, dynamo=True, dynamic_shapes=batch, verbose=False)
    session = onnxruntime.InferenceSession(file)
    y = torch.randn(5, 1, 14, 15)
    with torch.no_grad():
        expected = net(y)
    (found,) = session.run(None, {session.get_inputs()[0].name: y.numpy()})
    assert (torch.from_numpy(found) - expected).abs().max() < 1e-5 * expected.abs().max()


def test_it_compiles_as_one_graph() -> None:
    net = SeparableGConv(2, 3, 5, SO2, padding=2)
    x = torch.randn(2, 2, 4, 9, 9)
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    assert (compiled(x) - net(x)).abs().max() < 1e-5
    torch.compiler.reset()
