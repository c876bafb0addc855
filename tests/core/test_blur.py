"""Blur once, then the centres alone: against the sum written out tap by tap, and where it may be done at all."""

import copy

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import liespline as ls
from liespline import functional, ops, testing
from liespline.models.kernels import h_basis
from liespline.ops import blur, choose
from liespline.ops.layout import Order, fields_first, fields_last, order_of

from .path_cases import Case, assert_same, naive

TURNS, CUBE, CUBE_WITH_MIRRORS = ls.uniform(ls.SO2(), 4), ls.uniform(ls.SO3(), 24), ls.uniform(ls.O3(), 48)
LAYERS = [
    (ls.uniform(ls.Trivial(1), 1), 5, None, (9,)),
    (TURNS, 5, None, (9, 8)),
    (TURNS, 4, None, (8, 9)),
    (TURNS, 7, 3, (9, 9)),
    (ls.uniform(ls.O2(), 8), 5, 3, (7, 9)),
    (CUBE, 5, 7, (5, 6, 7)),
]


def grid_name(value: object) -> str:
    return repr(value.group) if isinstance(value, ls.Grid) else str(value)


@pytest.mark.parametrize(("grid", "window", "n_k", "space"), LAYERS, ids=grid_name)
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 2), (2, 3)])
def test_it_is_the_definition(
    grid: ls.Grid, window: int, n_k: int | None, space: tuple[int, ...], stride: int, padding: int
) -> None:
    torch.manual_seed(0)
    basis = h_basis(grid, "local", n_k) if n_k else None
    layer = ls.GConv(2, 2, window, grid, h_basis=basis, stride=stride, padding=padding, bias=False).double()
    x = torch.randn(1, 2, len(grid), *space, dtype=torch.float64, requires_grad=True)
    d = len(space)
    case = Case(x, layer.weight, *layer.samples(), layer.window.sizes, (stride,) * d, (padding,) * d)
    for keep in (False, True):  # twice: what is kept is right too
        with ops.use("blurred"), choose.watched() as asked:
            out = layer(x)
        if not keep:
            assert asked[0].blurred
        assert_same(out, naive(case), (x, layer.weight), 1e-12)
    lift = ls.Lift(2, 3, window, grid, stride=stride, padding=padding).double()
    image = torch.randn(1, 2, *space, dtype=torch.float64, requires_grad=True)
    ones = torch.ones(len(grid), 1, 1, 1, dtype=torch.float64)
    whole = Case(image.unsqueeze(2), lift.weight.unsqueeze(-1), lift.x_samples, ones, *list(vars(case).values())[4:])
    with ops.use("blurred"):
        out = lift(image) - lift.bias.view(-1, *(1,) * (1 + d))
    assert_same(out, naive(whole), (image, lift.weight), 1e-12)


@pytest.mark.parametrize(
    ("grid", "window", "left"),
    [
        (TURNS, 5, (3, 3)),
        (TURNS, 7, (5, 5)),
        (TURNS, (1, 5), None),  # a quarter turn leaves such a window
        (TURNS, 3, None),  # splines are cut off
        (TURNS, 1, None),
        (ls.uniform(ls.SO2(), 8), 5, None),  # centres between samples
        (ls.uniform(ls.Scale(2), 3, spacing=0.7), 5, None),
        (CUBE, 5, (3, 3, 3)),
        (CUBE_WITH_MIRRORS, 5, (3, 3, 3)),
        (ls.uniform(ls.SO3(), 12), 5, (3, 3, 3)),
        (ls.uniform(ls.SO3(), 60), 5, None),
        (ls.uniform(ls.Trivial(3), 1), (1, 5, 5), (1, 3, 3)),
    ],
    ids=grid_name,
)
def test_it_is_found_where_centres_keep_their_lattice(grid: ls.Grid, window: int, left: tuple[int, ...] | None) -> None:
    layer = ls.Lift(1, 1, window, grid)
    assert layer.plan is not None
    found = layer.plan.blur
    assert (found and found.window) == left
    if found is not None:
        assert ((found.centres == 0) | (found.centres == 1)).all()
        assert (found.centres.flatten(1, -2).sum(1) == 1).all()


def test_samples_that_are_no_one_spline_have_none() -> None:
    assert blur.blur_of(torch.randn(3, 5, 5, 4, dtype=torch.float64)) is None
    spline = torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 1.0])).double()
    samples = torch.zeros(1, 4, 4, 2, dtype=torch.float64)
    samples[0, :2, :2, 0] = samples[0, 2:, 1:3, 1] = spline
    found = blur.blur_of(samples)
    assert found is not None
    assert found.window == (3, 3)
    torch.testing.assert_close(found.spline, spline)
    samples[0, 2, 2, 1] += 1e-6
    assert blur.blur_of(samples) is None
    samples[0, :2, :2, 0] = samples[0, 2:, 1:3, 1] = torch.eye(2).double() + 1  # no product
    assert blur.blur_of(samples) is None
    samples[0, :2, :2, 0] = spline
    samples[0, :, :, 1] = 0
    samples[0, 3, 3, 1] = 1  # cut off to a single sample
    assert blur.blur_of(samples) is None


@pytest.mark.parametrize("order", list(Order))
def test_products_along_axes_keep_the_order_in_memory(order: Order) -> None:
    """As on a GPU, and of volumes."""
    x = torch.randn(2, 3, 4, 5, 6, 7, dtype=torch.float64)
    if order is Order.FIELDS:
        x = fields_first(fields_last(x).contiguous())
    elif order is Order.CHANNELS:
        x = x.movedim(1, -1).contiguous().movedim(-1, 1)
    line = torch.tensor([1.0, 4.0, 2.0], dtype=torch.float64)
    spline = line[:, None, None] * line[:, None] * line
    out = blur.blurred(x, blur.factors(x, spline, (0, 1, 2)), (0, 1, 2), order)
    right = torch.nn.functional.conv3d(x.flatten(0, 2)[:, None], spline[None, None], padding=(0, 1, 2))
    torch.testing.assert_close(out, right.view(*x.shape[:3], *right.shape[2:]))
    torch.testing.assert_close(out, blur.all_inside(x, blur.factors(x, spline, (0, 1, 2))))
    assert order_of(out) is order


def test_large_layers_are_blurred_and_small_ones_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    layer = ls.GConv(16, 16, 5, TURNS, padding=2)
    (found,) = testing.engine(layer, torch.randn(2, 16, 4, 32, 32)).layers
    assert found.path == "blurred"
    assert found.prices["blurred"] == min(found.prices.values())
    (found,) = testing.engine(layer, torch.randn(1, 16, 4, 6, 6)).layers
    assert found.path != "blurred"
    with ops.use("blurred"):  # where there is nothing to blur by, as ever
        (found,) = testing.engine(ls.GConv(8, 8, 5, ls.uniform(ls.SO2(), 8)), torch.randn(1, 8, 8, 9, 9)).layers
    assert found.path == "dense"


def both(layer: torch.nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    with ops.use("blurred"):
        blurred = layer(x)
    with ops.use("dense"):
        return blurred, layer(x)


def test_a_layer_that_was_moved_between_samples_is_not_blurred() -> None:
    layer, x = ls.GConv(2, 2, 5, TURNS).double(), torch.randn(1, 2, 4, 9, 9, dtype=torch.float64)
    torch.testing.assert_close(*both(layer, x))
    with ls.nn.shift(layer, torch.tensor([0.3])):
        torch.testing.assert_close(*both(layer, x))
        assert layer.plan is not None
        assert layer.plan.blur is None
    torch.testing.assert_close(*both(layer, x))


@pytest.mark.parametrize("padding_mode", ["zeros", "reflect", "circular", "disc"])
def test_every_border_and_dtype(padding_mode: str) -> None:
    layer, x = ls.GConv(3, 3, 5, TURNS, padding=2, padding_mode=padding_mode), torch.randn(2, 3, 4, 9, 9)
    torch.testing.assert_close(*both(layer, x))
    assert layer.plan is not None
    assert layer.plan.blur.centres.dtype == torch.float32  # float64 would draw all sampling with it
    torch.testing.assert_close(*both(copy.deepcopy(layer).double(), x.double()))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, right = both(layer, x)
    assert found.dtype == torch.bfloat16
    assert (found - right).float().norm() / right.float().norm() < 1e-2


@pytest.mark.parametrize(("grid", "side"), [(TURNS, 9), (CUBE, 6)], ids=grid_name)
def test_compilers_and_transforms_follow(grid: ls.Grid, side: int) -> None:
    layer = ls.GConv(1, 2, 5, grid, padding=2).double()
    x = torch.randn(2, 1, len(grid), *(side,) * grid.group.space_dim, dtype=torch.float64)
    right = functional.correlate(x, layer.weight, *layer.samples(), layer.bias, padding=2)
    torch.compiler.reset()
    with ops.use("blurred"):
        torch.testing.assert_close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x), right)
        torch.testing.assert_close(torch.vmap(layer)(x.unsqueeze(0)).squeeze(0), right)
        torch.testing.assert_close(
            torch.func.jvp(layer, (x,), (x,))[1] + layer.bias.view(-1, *(1,) * (x.ndim - 2)), right
        )
    torch.compiler.reset()


@pytest.mark.parametrize("path", ["blurred", "blocks"])
def test_layers_without_numbers_know_their_shapes(path: str) -> None:
    def run() -> Tensor:
        lift, first, last = ls.Lift(1, 2, 5, CUBE), ls.GConv(2, 2, 5, CUBE, padding=2), ls.GConv(2, 3, 1, CUBE)
        return last(first(lift(torch.randn(2, 1, 6, 6, 6))))

    with ops.use(path):
        with FakeTensorMode():
            out = run()
            out.sum().backward()
        assert out.shape == (2, 3, 24, 2, 2, 2)
        with torch.device("meta"):
            assert run().shape == out.shape


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("inputs", [(2,), (2, 5)], ids=["image", "on H"])
@pytest.mark.parametrize("products", [False, True])
def test_every_order_in_memory(
    order: Order, inputs: tuple[int, ...], products: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a GPU products along each axis are faster than one convolution, in two dimensions too.
    monkeypatch.setattr(blur, "_convolved", lambda cuda, d: not products)
    x = torch.randn(3, *inputs, 7, 8, dtype=torch.float64)
    spline = torch.outer(*torch.rand(2, 3, dtype=torch.float64))
    filters = spline.expand(inputs[0] * (5 if len(inputs) > 1 else 1), 1, 3, 3)
    expected = torch.nn.functional.conv2d(x.flatten(1, -3), filters, padding=(1, 0), groups=len(filters))
    found = blur.blurred(x, blur.factors(x, spline, (1, 0)), (1, 0), order)
    torch.testing.assert_close(found, expected.view(3, *inputs, 7, 6), rtol=0, atol=1e-13)
