"""nn.shift: the grids of a network moved on the group, and back to the bit."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounter

import liespline as ls
from liespline.models.kernels import h_basis
from liespline.nn import shift
from networks import CUBE, LINE, NETWORKS, SCALES, SO2, SPHERE, every_network, image

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")
X64 = torch.float64


def a_step(grid: ls.Grid) -> torch.Tensor:
    """An element that is not on the grid."""
    group = grid.group.quotient_of or grid.group
    return group.exp(0.3 * torch.linspace(1, 2, group.dim, dtype=X64))


@every_network
def test_there_and_back_is_the_same_to_the_bit(name: str) -> None:
    torch.manual_seed(0)
    net = NETWORKS[name]().double().eval()
    x, h = image(net, dtype=X64), a_step(net[0].grid)
    before, learned = net(x), {key: value.clone() for key, value in net.state_dict().items()}
    with shift(net, h):
        changed = (net(x) - before).abs().max()
    assert torch.equal(net(x), before)
    assert all(torch.equal(learned[key], value) for key, value in net.state_dict().items())
    assert bool(changed > 1e-6) == (name != "Trivial")


@pytest.mark.parametrize("grid", [SO2, SCALES, LINE, CUBE, SPHERE, ls.uniform(ls.O2(), 4)], ids=repr)
def test_a_shifted_layer_is_one_built_there(grid: ls.Grid) -> None:
    torch.manual_seed(0)
    h = a_step(grid)
    group = grid.group.quotient_of or grid.group
    elements = group.act(h, grid.elements) if grid.group.quotient_of else group.product(h, grid.elements)
    there = ls.Grid(grid.group, elements, grid.weights, grid.spacing)

    def network(grid: ls.Grid) -> nn.Module:
        # Kernels on H have their centres where they had them: only the grid moves.
        bases = [ls.SplineBasis(first) for first in (home, home)]
        layers = [ls.GConv(2, 2, 3, grid, h_basis=basis, padding=1) for basis in bases]
        return nn.Sequential(ls.Lift(1, 2, 3, grid, padding=1), *layers, ls.Project("vector", grid)).double()

    home = grid
    net, built = network(grid), network(there)
    built.load_state_dict(net.state_dict())
    x = torch.randn(1, 1, *{1: (15,), 2: (9, 10), 3: (5, 6, 5)}[grid.group.space_dim], dtype=X64)
    assert (shift(net, h).net(x) - built(x)).abs().max() < 1e-12
    net.float().double()  # buffers are derived from where the grids are now
    assert (net(x) - built(x)).abs().max() < 1e-6


def test_a_step_of_the_grid_permutes_features_and_leaves_what_is_invariant() -> None:
    torch.manual_seed(0)
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


def test_wrong_elements_are_refused() -> None:
    layer = ls.Lift(1, 1, 5, SCALES)
    with pytest.raises(ValueError, match=r"shift: h = \[-1.0\] is not an element of Scale"):
        shift(layer, torch.tensor([-1.0]))
    with pytest.raises(ValueError, match=r"h has shape \(2, 1\)"):
        shift(layer, torch.ones(2, 1))


def test_gradients_flow_and_training_mode_is_no_different() -> None:
    net = NETWORKS["SO2 local"]()
    x = image(net)
    with shift(net, torch.tensor([0.1])):
        net(x).square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())


def test_a_compiled_network_is_not_compiled_again() -> None:
    net = nn.Sequential(ls.Lift(1, 2, 5, SO2), nn.ReLU(), ls.GConv(2, 2, 5, SO2), ls.Project("max", SO2)).eval()
    counted = CompileCounter()
    compiled = torch.compile(net, backend=counted, fullgraph=True)
    x = torch.randn(1, 1, 14, 14)
    seen = []
    with torch.no_grad():
        for angle in (0.0, 0.1, 0.25):
            shift(net, torch.tensor([angle]))
            seen.append(compiled(x))
            assert (seen[-1] - net(x)).abs().max() < 1e-5
    assert counted.frame_count == 1
    assert (seen[1] - seen[0]).abs().max() > 1e-3
    torch.compiler.reset()


@pytest.mark.parametrize("grid", [SO2, CUBE], ids=repr)
def test_tables_about_h_stay_where_they_are_and_nothing_made_of_samples_does(grid: ls.Grid) -> None:
    d = grid.group.space_dim
    layer = ls.GConv(2, 2, 5, grid, h_basis=h_basis(grid, "apart", None)).eval()
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


@pytest.mark.filterwarnings("ignore:.*energy falls outside")
def test_windows_that_were_chosen_by_hand_come_back() -> None:
    net = ls.models.celeba(2, 2, preset="released").eval()
    x = torch.randn(1, 3, 16, 16)
    with torch.no_grad():
        before = net(x)
        with shift(net, torch.tensor([1.2])):
            assert net(x).shape == before.shape
        assert torch.equal(net(x), before)
