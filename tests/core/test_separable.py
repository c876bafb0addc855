"""Channel groups and separable correlations: `nn.Conv2d`'s meaning, for every group and dimension."""

import statistics
from collections.abc import Callable

import pytest
import torch
from torch import nn

import liespline as ls
from exported import same
from liespline.nn import Depthwise, SeparableGConv
from liespline.ops import choose
from liespline.ops.depthwise import masked
from networks import CUBE, TURNS
from own_group import every_grid, off_grid

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")
X64 = torch.float64
EIGHT = ls.uniform(ls.SO2(), 8)


@every_grid
@pytest.mark.parametrize("bases", [lambda grid: {}, off_grid], ids=["dense", "deformable"])
def test_groups_are_layers_side_by_side(grid: ls.Grid, bases: Callable[[ls.Grid], dict]) -> None:
    """Against one layer without groups for each group of channels, which others compare with naive loops."""
    x_basis = {key: basis for key, basis in bases(grid).items() if key == "x_basis"}
    space = (6, 5, 4)[: grid.group.space_dim]
    side_by_side(lambda c, o, g: ls.Lift(c, o, 3, grid, padding=1, groups=g, **x_basis), torch.randn(2, 4, *space))
    x = torch.randn(2, 4, len(grid), *space)
    side_by_side(lambda c, o, g: ls.GConv(c, o, 3, grid, padding=1, groups=g, **bases(grid)), x)


def side_by_side(make: Callable[[int, int, int], nn.Module], x: torch.Tensor) -> None:
    x = x.double()
    whole, parts = make(4, 6, 2).double(), [make(2, 3, 1).double() for _ in range(2)]
    assert whole.weight.shape[:2] == (6, 2)
    nn.init.normal_(whole.bias)
    for i, part in enumerate(parts):
        state = whole.state_dict()
        part.load_state_dict(state | {key: state[key].chunk(2)[i] for key in ("weight", "bias")})
    expected = torch.cat([part(half) for part, half in zip(parts, x.chunk(2, 1), strict=True)], 1)
    assert (whole(x) - expected).abs().max() < 1e-12 * expected.abs().max()


def test_functions_on_the_group_alone() -> None:
    side_by_side(lambda c, o, g: ls.GConv(c, o, None, CUBE, groups=g), torch.randn(3, 4, 12))
    same(nn.Sequential(ls.GConv(4, 6, None, CUBE, groups=2), nn.ReLU()), torch.randn(3, 4, 12))


@pytest.mark.parametrize("options", [{"stride": 2}, {"padding": "same", "padding_mode": "circular"}, {"bias": False}])
def test_groups_are_exported_with_their_options(options: dict) -> None:
    net = nn.Sequential(ls.Lift(2, 4, 5, TURNS, groups=2, **options), ls.GConv(4, 8, 3, TURNS, groups=4, **options))
    same(net, torch.randn(2, 2, 19, 20))


@pytest.mark.parametrize("groups", [2, 8, 32])
def test_activations_keep_their_size(groups: int) -> None:
    """In the mean over draws, as without groups. A chain of depthwise layers alone would lose channels to ReLU."""

    def moment(groups: int) -> float:
        found = []
        for seed in range(20):
            torch.manual_seed(seed)
            x = torch.randn(2, 32, 4, 9, 9).relu()
            layer = ls.GConv(32, 32, 5, TURNS, padding="same", padding_mode="circular", groups=groups)
            found.append(float(layer(x).detach().square().mean()))
        return statistics.mean(found)

    assert 0.8 < moment(groups) / moment(1) < 1.25


@every_grid
@pytest.mark.parametrize("kind", ["dense", "moved"])
def test_it_is_the_group_correlation_of_product_kernels(grid: ls.Grid, kind: str) -> None:
    """K(x, h) = k(x) M(h) through GConv, which is compared with naive loops elsewhere."""
    d = grid.group.space_dim
    h_basis = off_grid(grid, trainable=False)["h_basis"] if kind == "moved" else ls.SplineBasis(grid)
    options = {"x_basis": ls.SplineBasis(ls.disc(3, d)), "h_basis": h_basis, "padding": 1}
    layer = SeparableGConv(2, 3, 3, grid, **options).double()
    whole = ls.GConv(2, 3, 3, grid, **options).double()
    mix, filters = layer
    at_zero = ls.bspline(torch.zeros(1, dtype=X64), 3) ** d  # the single spline of a 1-sample window, there
    with torch.no_grad():
        nn.init.normal_(filters.bias)
        whole.bias.copy_(filters.bias)
        whole.weight.copy_(at_zero * torch.einsum("ox,oij->oixj", filters.weight[:, 0], mix.weight[:, :, 0]))
    x = torch.randn(2, 2, len(grid), *(6, 5, 4)[:d], dtype=X64)
    found, expected = layer(x), whole(x)
    # On S² kernels are made symmetric as a product of two; here each factor is by itself.
    assert found.shape == expected.shape
    assert isinstance(grid.group, ls.Sphere) or (found - expected).abs().max() < 1e-12 * expected.abs().max()


@pytest.mark.parametrize("options", [{"stride": 2, "padding": 1}, {"padding": "same", "padding_mode": "reflect"}, {}])
@pytest.mark.parametrize("grid", [TURNS, ls.uniform(ls.Scale(2), 2, spacing=0.4)], ids=repr)
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


def test_coefficients_drawn_anew_are_as_large_as_those_of_a_new_layer() -> None:
    def deviation(layer: SeparableGConv, part: int) -> float:
        return float(layer[part].weight.detach().std())

    for grid in (TURNS, EIGHT):
        for seed in range(3):
            torch.manual_seed(seed)
            fresh, again = (SeparableGConv(48, 64, 5, grid, padding=2) for _ in range(2))
            before = again[1].weight.detach().clone()
            again.reset_parameters()
            assert not torch.equal(again[1].weight, before)
            for part in (0, 1):
                assert deviation(again, part) == pytest.approx(deviation(fresh, part), rel=0.15)


def test_it_trains_fewer_numbers_and_every_one_of_them() -> None:
    layer = SeparableGConv(4, 6, 5, TURNS)
    assert sum(p.numel() for p in layer.parameters()) == 4 * 6 * 4 + 6 * 9 + 6
    moving = SeparableGConv(4, 6, 5, TURNS, x_basis=ls.SplineBasis(ls.disc(3), trainable=True))
    for one in (layer, moving):
        one(torch.randn(2, 4, 4, 9, 9)).square().sum().backward()
        assert all(bool(p.grad.abs().sum() > 0) for p in one.parameters())


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1)])
def test_few_small_fields_are_one_convolution(d: int, stride: int, padding: int) -> None:
    x, kernel = torch.randn(2, 6, *(9, 8)[:d]).double(), torch.randn(6, *(3, 4)[:d]).double()
    convolve = (nn.functional.conv1d, nn.functional.conv2d)[d - 1]
    right = convolve(x, kernel.unsqueeze(1), None, stride, padding, groups=6)
    torch.testing.assert_close(masked.correlate(x, kernel, (stride,) * d, (padding,) * d), right)


def test_many_or_large_fields_are_not() -> None:
    def taken(*shape: int) -> str:
        return choose.depthwise(torch.empty(shape), (3, 3), (1, 1), (0, 0)).name

    assert taken(1, 2, 8, 8, 8) == "masked"
    assert [taken(1, 16, 8, 8, 8), taken(1, 2, 8, 40, 40), taken(64, 2, 8, 8, 8)] == ["plain"] * 3
    seen = []
    torch.vmap(lambda x: seen.append(choose.depthwise(x, (3, 3), (1, 1), (0, 0)).name) or x)(
        torch.ones(1, 1, 2, 8, 8, 8)
    )
    assert seen == ["plain"]
