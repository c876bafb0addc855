"""nn.shift moves the grids of a network, GridAverage is the mean over several, Ensemble over networks."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter
from torch.torch_version import TorchVersion

import liespline as ls
from liespline import models
from liespline.models.kernels import h_basis
from liespline.nn import Ensemble, GridAverage, shift
from networks import CUBE, FLIPS, LINE, SCALES, SO2, SPHERE, TURNS

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")
X64 = torch.float64
every_grid = pytest.mark.parametrize("grid", [SO2, SCALES, LINE, CUBE, SPHERE, FLIPS], ids=repr)


def a_step(grid: ls.Grid) -> Tensor:
    """An element that is not on the grid."""
    group = grid.group.quotient_of or grid.group
    return group.exp(0.3 * torch.linspace(1, 2, group.dim, dtype=X64))


def there(grid: ls.Grid, h: Tensor) -> ls.Grid:
    """The grid moved by h."""
    group = grid.group.quotient_of or grid.group
    elements = group.act(h, grid.elements) if grid.group.quotient_of else group.product(h, grid.elements)
    return ls.Grid(grid.group, elements, grid.weights, grid.spacing)


def built_at(grid: ls.Grid, home: ls.Grid) -> nn.Module:
    """A network whose grid is this one, its splines on H those of the other: only the grid moves."""
    layers = [ls.GConv(2, 2, 3, grid, h_basis=ls.SplineBasis(home), padding=1) for _ in range(2)]
    norm = nn.BatchNorm3d(2) if grid.group.space_dim == 2 else nn.Identity()
    return nn.Sequential(ls.Lift(1, 2, 3, grid, padding=1), norm, *layers, ls.Project("vector", grid)).double().eval()


def image(grid: ls.Grid) -> Tensor:
    return torch.randn(2, 1, *{1: (15,), 2: (9, 10), 3: (5, 6, 5)}[grid.group.space_dim], dtype=X64)


@every_grid
def test_a_shifted_layer_is_one_built_there(grid: ls.Grid) -> None:
    h, x = a_step(grid), image(grid)
    net, built = built_at(grid, grid), built_at(there(grid, h), grid)
    built.load_state_dict(net.state_dict())
    assert (shift(net, h).net(x) - built(x)).abs().max() < 1e-12
    net.float().double()  # buffers are derived from where the grids are now
    assert (net(x) - built(x)).abs().max() < 1e-6


@every_grid
@pytest.mark.parametrize("count", [2, 3])
def test_an_average_is_the_mean_of_networks_built_there(grid: ls.Grid, count: int) -> None:
    net, x = built_at(grid, grid), image(grid)
    group = grid.group.quotient_of or grid.group
    expected = torch.zeros_like(net(x))
    for k in range(count):
        built = built_at(there(grid, group.exp(torch.full((group.dim,), grid.spacing, dtype=X64) * k / count)), grid)
        built.load_state_dict(net.state_dict())
        expected += built(x) / count
    assert (GridAverage(net, count)(x) - expected).abs().max() < 1e-12
    assert (net(x) - expected).abs().max() > 1e-6, "one grid is not the mean of several"


def test_a_step_of_the_grid_permutes_features_and_leaves_what_is_invariant() -> None:
    layers = nn.Sequential(ls.Lift(1, 3, 5, SO2), nn.ReLU(), ls.GConv(3, 2, 5, SO2)).double()
    invariant = nn.Sequential(layers, ls.Project("max", SO2))
    x = torch.randn(1, 1, 14, 14, dtype=X64)
    still, projected = layers(x), invariant(x)
    with shift(invariant, torch.tensor([3 * math.pi / 4], dtype=X64)):
        assert (layers(x) - still.roll(-3, 2)).abs().max() < 1e-12
        assert (invariant(x) - projected).abs().max() < 1e-12


def test_h_counts_from_where_the_grid_was_built() -> None:
    layer = ls.Lift(1, 1, 5, SO2)
    shift(layer, torch.tensor([0.2]))
    shift(layer, torch.tensor([0.3]))
    assert layer.out_grid.elements[0].item() == pytest.approx(0.3)
    shift(layer, None)
    assert layer.out_grid is SO2


def test_a_compiled_network_is_not_compiled_again() -> None:
    net = nn.Sequential(ls.Lift(1, 2, 5, SO2), nn.ReLU(), ls.GConv(2, 2, 5, SO2), ls.Project("max", SO2)).eval()
    counted, seen = CompileCounter(), []
    compiled = torch.compile(net, backend=counted, fullgraph=True)
    x = torch.randn(1, 1, 14, 14)
    with torch.no_grad():
        for angle in (0.0, 0.1, 0.25):
            shift(net, torch.tensor([angle]))
            seen.append(compiled(x))
            assert (seen[-1] - net(x)).abs().max() < 1e-5
    # torch before 2.7 sees that the plan of a moved layer has a home: once more, and then no more.
    assert counted.frame_count == (1 if TorchVersion(torch.__version__) >= "2.7" else 2)
    assert (seen[1] - seen[0]).abs().max() > 1e-3
    torch.compiler.reset()


@pytest.mark.parametrize("grid", [SO2, CUBE], ids=repr)
def test_tables_about_h_stay_where_they_are_and_nothing_made_of_samples_does(grid: ls.Grid) -> None:
    d = grid.group.space_dim
    layer = ls.GConv(2, 2, 5, grid, h_basis=h_basis(grid, "pointwise", None)).eval()
    x = torch.randn(1, 2, len(grid), *d * (9,))
    assert layer.plan is not None
    assert (d == 3) == any(part.rank for part in layer.plan.parts)  # turns of the voxels leave splines in a few planes
    before, tables = layer.plan, layer.plan.parts[0].tables
    with torch.no_grad():
        home = layer(x)  # in inference, kernels are kept with the plan
        shift(layer, a_step(grid))
        assert layer.plan is not None
        assert layer.plan is not before
        assert layer.plan.parts[0].tables is tables
        assert not any(part.rank for part in layer.plan.parts)
        right = ls.GConv(2, 2, 5, layer.grid, h_basis=layer.h_basis).eval()
        right.load_state_dict(layer.state_dict())
        assert (layer(x) - right(x)).abs().max() < 1e-5
        shift(layer, None)
        assert torch.equal(layer(x), home)


def invariant() -> nn.Module:
    """Four orientations, the mean over them and over space."""
    layers = (ls.Lift(1, 3, 5, TURNS), nn.ReLU(), ls.GConv(3, 2, 5, TURNS), ls.Project("mean", TURNS))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()).double().eval()


def test_half_a_step_leaves_two_grids_as_they_are() -> None:
    """The grids change places: exact. On one grid the output is another, which is what the second one is for."""
    net, x = invariant(), torch.randn(2, 1, 15, 15, dtype=X64)
    over, half = GridAverage(net), torch.tensor([math.pi / 4], dtype=X64)
    one, two = net(x), over(x)
    with shift(net, half):
        assert (net(x) - one).abs().max() > 1e-4
    with shift(over, half):
        assert (over(x) - two).abs().max() < 1e-12
    assert torch.equal(over(x), two)


def test_parameters_and_statistics_are_those_of_the_network() -> None:
    net = models.classifier(1, 3, SO2, widths=(4, 4)).eval()
    over = GridAverage(net, 3)
    assert sum(p.numel() for p in over.parameters()) == sum(p.numel() for p in net.parameters())
    with torch.no_grad():
        for tensor in (*net.parameters(), *(b for name, b in net.named_buffers() if "running" in name)):
            tensor.mul_(1.1)
    x = torch.randn(2, 1, 16, 16)
    assert torch.allclose(over(x), GridAverage(net, 3)(x))


def test_an_ensemble_is_the_mean_of_linear_maps() -> None:
    parts = [nn.Linear(3, 2, bias=False).double() for _ in range(4)]
    x = torch.randn(5, 3, dtype=X64)
    mean = sum(part.weight for part in parts) / 4
    assert torch.allclose(Ensemble(parts)(x), x @ mean.T, atol=1e-14)
    each = Ensemble(parts).each(x)
    assert all(torch.equal(one, part(x)) for one, part in zip(each, parts, strict=True))
    assert len(each) == 4
