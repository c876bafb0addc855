"""Each layer against the formulas as naive loops, and its gradients."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

import liespline as ls
import oracle
from cases import CASES, Case
from liespline.functional import Padding

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


def lift(case: Case, kernel_size: int | tuple[int, ...] = 3, **options: object) -> ls.Lift:
    return ls.Lift(2, 2, kernel_size, case.grid, x_basis=case.x_basis(), dtype=torch.float64, **options)  # type: ignore[arg-type]


def gconv(case: Case, kernel_size: int | tuple[int, ...] = 3, **options: object) -> ls.GConv:
    bases = {"x_basis": case.x_basis(), "h_basis": case.h_basis(), "dtype": torch.float64}
    return ls.GConv(2, 2, kernel_size, case.grid, **bases, **options)  # type: ignore[arg-type]


def close(found: torch.Tensor, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected, atol=1e-10, rtol=0)


def name(case: Case) -> str:
    return f"{case.name}-{case.kind}"


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_lift_is_the_formula(case: Case) -> None:
    layer = lift(case)
    sampled = oracle.kernel(layer)
    close(layer.kernel(), sampled)
    x = torch.randn(2, 2, *(5, 4, 5)[: case.d], dtype=torch.float64)
    close(layer(x), oracle.correlate(layer, x.numpy(), sampled))


@pytest.mark.parametrize("case", CASES, ids=name)
def test_gconv_is_the_formula(case: Case) -> None:
    layer = gconv(case, padding=1)
    sampled = oracle.kernel(layer)
    close(layer.kernel(), sampled)
    x = torch.randn(2, 2, len(case.grid), *(4, 3, 3)[: case.d], dtype=torch.float64)
    close(layer(x), oracle.correlate(layer, x.numpy(), sampled))


OPTIONS = [
    {"kernel_size": 4, "padding": 1},
    {"kernel_size": (3, 5), "padding": (1, 0)},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (2, 3), "stride": (1, 3)},
    {"kernel_size": 1},
    {"kernel_size": 3, "padding": "same"},
    {"kernel_size": 4, "padding": "same"},
    {"kernel_size": (2, 5), "padding": "same"},  # more padding after than before, on one axis alone
    {"kernel_size": 3, "bias": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("case", [c for c in CASES if name(c) in ("SO2-dense", "Scale(2)-local")], ids=name)
def test_windows_strides_and_padding(case: Case, options: dict[str, object]) -> None:
    x = torch.randn(1, 2, 9, 7, dtype=torch.float64)
    layer = lift(case, **options)  # type: ignore[arg-type]
    close(layer(x), oracle.correlate(layer, x.numpy(), oracle.kernel(layer)))
    x = torch.randn(1, 2, len(case.grid), 9, 7, dtype=torch.float64)
    layer = gconv(case, **options)  # type: ignore[arg-type]
    close(layer(x), oracle.correlate(layer, x.numpy(), oracle.kernel(layer)))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_padding_modes(mode: str, d: int) -> None:
    grid = ls.uniform(ls.Scale(d), 2, spacing=0.4)
    layer = ls.GConv(1, 1, 3, grid, padding=1, padding_mode=mode).double()
    x = torch.randn(1, 1, 2, *(9, 8, 7)[:d], dtype=torch.float64)
    border = (layer.window.largest[0] - 1) // 2
    ends = {"circular": "wrap", "replicate": "edge", "reflect": "reflect"}[mode]
    padded = np.pad(x.numpy(), [(0, 0)] * 3 + [(border, border)] * d, mode=ends)
    layer.padding = Padding((0,) * d, (0,) * d)
    inner = oracle.correlate(layer, padded, oracle.kernel(layer))
    middle = (slice(None),) * 3 + tuple(slice(border - 1, inner.shape[3 + i] - border + 1) for i in range(d))
    layer.padding = Padding((1,) * d, (1,) * d)
    close(layer(x), inner[middle])


def test_different_input_and_output_grids() -> None:
    fine, coarse = ls.uniform(ls.SO2(), 6), ls.uniform(ls.SO2(), 3)
    for grid, out_grid in ((fine, coarse), (coarse, fine)):
        layer = ls.GConv(2, 3, 3, grid, out_grid=out_grid).double()
        x = torch.randn(1, 2, len(grid), 5, 5, dtype=torch.float64)
        close(layer(x), oracle.correlate(layer, x.numpy(), oracle.kernel(layer)))


@pytest.mark.parametrize("case", [c for c in CASES if c.name in ("SO2", "Scale(2)", "SO3")], ids=name)
def test_gradients(case: Case) -> None:
    layer = gconv(case, kernel_size=2) if case.d == 3 else gconv(case)
    names = [n for n, _ in layer.named_parameters()]
    if case.kind == "deformable":
        assert {"x_centres", "h_centres"} <= set(names)
    x = torch.randn(1, 2, len(case.grid), *(3, 3, 2)[: case.d], dtype=torch.float64, requires_grad=True)

    def run(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.autograd.gradcheck(run, (x, *layer.parameters()), fast_mode=True)


@pytest.mark.parametrize("reduce", ["max", "mean", "sum"])
def test_projection(reduce: str) -> None:
    grid = ls.local(ls.SO3(), 7, 0.5)
    x = torch.randn(2, 3, 7, 2, 2, 2, dtype=torch.float64)
    w = grid.weights.numpy()
    expected = {
        "max": x.numpy().max(2),
        "sum": np.einsum("nchxyz,h->ncxyz", x.numpy(), w),
        "mean": np.einsum("nchxyz,h->ncxyz", x.numpy(), w) / w.sum(),
    }[reduce]
    close(ls.Project(reduce, grid).double()(x), expected)


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
