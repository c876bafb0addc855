"""Initialisation: the spectrum of kernels, and activations that keep their size, whatever the group and the kernel."""

import math
import statistics
from typing import Any

import pytest
import torch

import liespline as ls
from liespline import SplineBasis, nn
from liespline.nn import SeparableGConv
from networks import TURNS

SO2, SCALE = ls.uniform(ls.SO2(), 8), ls.uniform(ls.Scale(2), 4, spacing=0.5 * math.log(2))
KERNELS = {
    "dense": lambda: (SO2, SplineBasis(SO2)),
    "four": lambda: (TURNS, SplineBasis(TURNS)),
    "few and wide": lambda: (SO2, SplineBasis(ls.uniform(ls.SO2(), 4))),
    "local": lambda: (SO2, SplineBasis(ls.local(ls.SO2(), 3, SO2.spacing))),
    "atrous": lambda: (SO2, SplineBasis(ls.uniform(ls.SO2(), 4), scale=SO2.spacing)),
    "deformable": lambda: (SO2, SplineBasis(ls.local(ls.SO2(), 3, SO2.spacing), trainable=True)),
    "scale dense": lambda: (SCALE, SplineBasis(SCALE)),
    "scale local": lambda: (SCALE, SplineBasis(ls.local(ls.Scale(2), 3, SCALE.spacing))),
    "trivial": lambda: (ls.uniform(ls.Trivial(2), 1), None),
    "sphere": lambda: (ls.uniform(ls.Sphere(), 6), None),
    "SO(3)": lambda: (ls.uniform(ls.SO3(), 12), None),
}


def moments(kernel: str, seed: int, kind: type = ls.GConv, *, width: int = 32) -> list[float]:
    """The second moment of each of twenty layers with flat spectra, from that of white inputs after ReLU."""
    torch.manual_seed(seed)
    grid, basis = KERNELS[kernel]()
    d = grid.group.space_dim
    size, window = (21 if grid is SCALE else 13, 5) if d == 2 else (6, 3)
    x = math.sqrt(2) * torch.randn(2, width, len(grid), *[size] * d)
    found = []
    for _ in range(20):
        layer = nn.redraw(kind(width, width, window, grid, h_basis=basis, padding="same", padding_mode="circular"), 0.5)
        x = layer(torch.relu(x)).detach()
        found.append(float(x.square().mean() / 2))
    return found


def typical(kernel: str, kind: type, seeds: int, **how: Any) -> float:
    return statistics.median(moments(kernel, seed, kind, **how)[-1] for seed in range(seeds))


def growth(kernel: str, seed: int, kind: type) -> float:
    """Standard deviation after ten layers as they start by default, and ReLUs, over the input's."""
    torch.manual_seed(seed)
    grid, basis = KERNELS[kernel]()
    d = grid.group.space_dim
    size, window = (9, 5) if d == 2 else (6, 3)
    x = torch.randn(2, 32, len(grid), *[size] * d)
    before = x.std()
    for _ in range(10):
        layer = kind(32, 32, window, grid, h_basis=basis, padding="same", padding_mode="circular")
        x = torch.relu(layer(x)).detach()
    return float(x.std() / before)


@pytest.mark.filterwarnings("ignore:.*energy falls outside")
@pytest.mark.parametrize(
    ("kind", "kernel"),
    [*((ls.GConv, kernel) for kernel in KERNELS), *((SeparableGConv, k) for k in ("dense", "four", "SO(3)"))],
)
def test_ten_layers_keep_the_size_of_activations(kind: type, kernel: str) -> None:
    assert 0.5 < statistics.median(growth(kernel, seed, kind) for seed in range(3)) < 2


@pytest.mark.filterwarnings("ignore:.*energy falls outside")
@pytest.mark.parametrize("kernel", [kernel for kernel in KERNELS if kernel not in ("four", "sphere")])
def test_twenty_layers_keep_the_second_moment(kernel: str) -> None:
    assert 1 / 3 < typical(kernel, ls.GConv, 3) < 3


@pytest.mark.filterwarnings("ignore:.*energy falls outside")
@pytest.mark.parametrize(
    ("kernel", "kind", "draws", "how"),
    [
        ("dense", SeparableGConv, 8, {}),
        ("SO(3)", SeparableGConv, 3, {}),
        ("local", ls.GConv, 5, {"width": 8}),
        ("scale dense", ls.GConv, 5, {"width": 8}),
    ],
)
def test_so_do_separable_layers_and_narrow_ones(kernel: str, kind: type, draws: int, how: dict[str, Any]) -> None:
    assert 1 / 3 < typical(kernel, kind, draws, **how) < 3


def drawn(layer: ls.Lift, bandwidth: float) -> torch.Tensor:
    """Kernels `(n, N_h, taps)` in float64."""
    torch.manual_seed(0)
    return nn.redraw(layer.double(), bandwidth).kernel().detach().transpose(1, 2).flatten(0, 1).flatten(2)


def test_nine_splines_in_nine_samples_are_drawn_white() -> None:
    kernels = drawn(ls.Lift(100, 100, 3, ls.uniform(ls.SO2(), 1)), 0.5)[:, 0]
    covariance = kernels.T @ kernels / len(kernels)
    torch.testing.assert_close(covariance / covariance.trace() * 9, torch.eye(9).double(), rtol=0, atol=0.05)


@pytest.mark.parametrize("grid", [SO2, SCALE])
def test_a_flat_spectrum_treats_constant_inputs_as_white_ones(grid: ls.Grid) -> None:
    """The mean gain over elements: Σ_y K² on white inputs, (Σ_y K)² on constant ones."""
    kernels = drawn(ls.Lift(80, 80, 5, grid), 0.5)
    assert float(kernels.sum(-1).square().mean() / kernels.square().sum(-1).mean()) == pytest.approx(1, rel=0.025)
    smooth = drawn(ls.Lift(80, 80, 5, grid), 0.0)
    assert smooth.sum(-1).square().mean() > 3 * smooth.square().sum(-1).mean()


@pytest.mark.parametrize(("bandwidth", "least", "most"), [(0.0, 0.0, 0.05), (0.5, 0.3, 1.0)])
def test_high_frequencies_pass_six_layers(bandwidth: float, least: float, most: float) -> None:
    """The share of energy above half the Nyquist frequency, but constants, of white inputs with batch norm between."""
    torch.manual_seed(0)
    x = torch.randn(4, 1, 21, 21)
    layers = [ls.Lift(1, 16, 5, SO2, padding=2, padding_mode="circular")]
    layers += [ls.GConv(16, 16, 5, SO2, padding=2, padding_mode="circular") for _ in range(5)]
    with torch.no_grad():
        for i, layer in enumerate(layers):
            x = nn.redraw(layer, bandwidth)(torch.relu(nn.BatchNorm(16)(x)) if i else x)
    energy = torch.fft.fft2(x - x.mean((-2, -1), keepdim=True)).abs().square().sum((0, 1, 2))
    frequency = torch.fft.fftfreq(21).abs()
    high = torch.maximum(frequency[:, None], frequency) > 0.25
    assert least <= float(energy[high].sum() / energy.sum()) <= most


def test_networks_are_drawn_anew() -> None:
    torch.manual_seed(0)
    net = ls.models.classifier(1, 10, SO2, widths=(4, 4), separable=True)
    before = {name: value.clone() for name, value in net.named_parameters()}
    torch.manual_seed(1)
    assert nn.redraw(net, 0.25) is net
    changed = {name for name, value in net.named_parameters() if not torch.equal(value, before[name])}
    correlations = {name for name, module in net.named_modules() if isinstance(module, nn.base.Correlation)}
    assert changed == {f"{name}.weight" for name in correlations}
    with pytest.raises(ValueError, match=r"bandwidth = 0\.7, must be from 0 .* to 0\.5"):
        nn.redraw(net, 0.7)


@pytest.mark.parametrize(
    ("elements", "centre"),
    [([1.0, 4.0], 1.0), ([1.0, 2.0], 2.0)],
    ids=["an element that reads itself alone", "an element that reads nothing"],
)
def test_coefficients_are_moderate_where_elements_read_little(elements: list[float], centre: float) -> None:
    """With a spline one step up, scale 1 reads scale 2, which reads nothing: a second such layer is all zero."""
    grid = ls.Grid(ls.Scale(2), torch.tensor(elements).unsqueeze(-1), torch.ones(2), math.log(2))
    other = ls.Grid(ls.Scale(2), torch.tensor([[0.25], [1.0]]), torch.ones(2), math.log(2))
    basis = SplineBasis(ls.Grid(ls.Scale(2), torch.tensor([[centre]]), torch.ones(1), 0.3), degree=1)
    for out_grid in (grid, other):
        layer = ls.GConv(4, 4, 5, grid, out_grid=out_grid, h_basis=basis)
        assert 0 < layer.weight.abs().max() < 100
        assert 0 < nn.redraw(layer, 0.5).weight.abs().max() < 100
