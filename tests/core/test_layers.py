"""Each layer against the formulas as naive loops, and its gradients."""

import math
import warnings

import numpy as np
import pytest
import torch

import liespline as ls
import oracle
from liespline import functional
from own_group import GRIDS, every_grid, off_grid

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


def close(found: torch.Tensor, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("trainable", [False, True])
@pytest.mark.parametrize("kind", [ls.Lift, ls.GConv])
@every_grid
def test_layers_are_the_formula(grid: ls.Grid, kind: type, trainable: bool) -> None:
    bases = off_grid(grid, trainable=trainable)
    if kind is ls.Lift:
        del bases["h_basis"]
    layer = kind(2, 2, 3, grid, padding=1, dtype=torch.float64, **bases)
    sampled = oracle.kernel(layer)
    close(layer.kernel(), sampled)
    lead = (2, 2) if kind is ls.Lift else (2, 2, len(grid))
    x = torch.randn(*lead, *(4, 3, 3)[: grid.group.space_dim], dtype=torch.float64)
    close(layer(x), oracle.correlate(layer, x.numpy(), sampled))


def test_the_sizes_of_windows_may_be_left_out() -> None:
    """They save time where some are smaller than others, and change nothing."""
    grid = ls.uniform(ls.Scale(2), 3, spacing=0.5 * math.log(2))
    first, second = (kind(2, 2, 3, grid, dtype=torch.float64) for kind in (ls.Lift, ls.GConv))
    assert len(set(first.window.sizes)) > 1
    x = torch.randn(1, 2, 14, 14, dtype=torch.float64)
    options = [layer._options() | {"sizes": None} for layer in (first, second)]
    lifted = functional.lift(x, first.weight, first.samples()[0][:, 0], first.bias, **options[0])
    torch.testing.assert_close(lifted, first(x))
    correlated = functional.correlate(lifted, second.weight, *second.samples(), second.bias, **options[1])
    torch.testing.assert_close(correlated, second(lifted))


def test_options_may_be_numbers() -> None:
    """Stride and padding of the functions, as those of the layers."""
    layer = ls.Lift(1, 2, 5, ls.uniform(ls.SO2(), 3), stride=2, padding=1, dtype=torch.float64)
    x = torch.randn(2, 1, 11, 11, dtype=torch.float64)
    lifted = functional.lift(x, layer.weight, layer.samples()[0][:, 0], layer.bias, stride=2, padding=1)
    torch.testing.assert_close(lifted, layer(x))


@pytest.mark.parametrize("name", ["SO2", "Scale(2)", "SO3"])
def test_gradients(name: str) -> None:
    grid = GRIDS[name]
    d = grid.group.space_dim
    layer = ls.GConv(2, 2, 2 if d == 3 else 3, grid, dtype=torch.float64, **off_grid(grid))
    names = [n for n, _ in layer.named_parameters()]
    assert {"x_centres", "h_centres"} <= set(names)
    x = torch.randn(1, 2, len(grid), *(3, 3, 2)[:d], dtype=torch.float64, requires_grad=True)

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradcheck(run, (x, *layer.parameters()), fast_mode=True)


def test_layers_show_what_they_are() -> None:
    grid = ls.uniform(ls.SO2(), 4)
    shown = repr(ls.GConv(2, 3, 5, grid, stride=2, padding=1))
    assert "2, 3, 5×5, Grid(SO2(), 4 elements, spacing=1.571), N_x=9, N_k=4, stride=(2, 2)" in shown
    assert "no space" in repr(ls.GConv(1, 1, None, grid))
    assert repr(ls.Project("max", grid)) == "Project('max', Grid(SO2(), 4 elements, spacing=1.571))"
    assert repr(ls.nn.MaxPool(3, 2)) == "MaxPool(3, stride=2, padding=0)"
    assert repr(ls.groups.Semidirect(ls.SO2())) == "Semidirect(SO2())"


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("size", [(3, 3), (4, 4), (2, 5)])
def test_same_pads_where_torch_does(size: tuple[int, int]) -> None:
    layer = ls.Lift(2, 3, size, ls.uniform(ls.Trivial(2), 1), padding="same", bias=False).double()
    x = torch.randn(1, 2, 7, 6, dtype=torch.float64)
    expected = torch.nn.functional.conv2d(x, layer.kernel()[:, 0], padding="same")
    close(layer(x)[:, :, 0], expected.detach().numpy())


def test_vectors_by_hand() -> None:
    n = 5
    grid = ls.uniform(ls.SO2(), n)
    x = torch.randn(2, 3, n, 4, 6, dtype=torch.float64)
    found = ls.Project("vector", grid).double()(x)
    assert found.shape == (2, 3, 2, 4, 6)
    angles = [2 * math.pi * i / n for i in range(n)]
    for axis, wave in enumerate((math.cos, math.sin)):
        right = sum(wave(angle) * x[:, :, i] for i, angle in enumerate(angles)) / n
        assert (found[:, :, axis] - right).abs().max() < 1e-12


def test_every_group_has_directions() -> None:
    scales = ls.uniform(ls.Scale(2), 3, spacing=0.4)
    assert torch.allclose(ls.functional.directions(scales)[:, 0], scales.elements[:, 0])
    sphere = ls.uniform(ls.Sphere(), 6)
    assert torch.allclose(ls.functional.directions(sphere), sphere.elements, atol=1e-12)
    assert ls.Project("vector", sphere)(torch.randn(1, 2, 6, 3, 3, 3)).shape == (1, 2, 3, 3, 3, 3)


@pytest.mark.parametrize(
    ("grid", "out_grid", "k"),
    [
        (ls.uniform(ls.SO2(), 2), None, 5),  # where splines overlap themselves
        (ls.local(ls.SO2(), 3, 0.8), ls.local(ls.SO2(), 3, 0.5), 3),  # weights that differ
        (ls.uniform(ls.SO2(), 6), ls.uniform(ls.SO2(), 3), 3),
    ],
)
def test_kernels_between_grids_are_the_formula(grid: ls.Grid, out_grid: ls.Grid | None, k: int) -> None:
    layer = ls.GConv(1, 2, k, grid, out_grid=out_grid, dtype=torch.float64)
    close(layer.kernel(), oracle.kernel(layer))


@pytest.mark.parametrize("k", [3, 4, 5, 7])
def test_windows_grow_with_their_scales(k: int) -> None:
    """The window of scale s holds the samples nearer the centre than s times the first one left out at scale 1."""
    grid = ls.uniform(ls.Scale(2), 5, spacing=0.5 * math.log(2))
    offsets = [i + (0.5 if k % 2 == 0 else 0.0) for i in range(-99, 99)]
    for s, size in zip(grid.elements[:, 0].tolist(), functional.window(grid, (k, k)).sizes, strict=True):
        inside = sum(abs(v) < s * (k + 1) / 2 - 1e-9 for v in offsets)
        assert size == (inside, inside)
    assert set(functional.window(ls.uniform(ls.SO2(), 8), (k, k)).sizes) == {(k, k)}
    assert functional.window(ls.uniform(ls.SO2(), 4), (3, 7)).sizes[1] == (7, 3)
