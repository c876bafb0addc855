"""Kernels where a grid of scales ends: `h_boundary`, against loops, extended grids and what should stay constant."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.models.kernels import h_basis
from liespline.testing import measure_equivariance

STEP = 0.5 * math.log(2)
SCALES = ls.uniform(ls.Scale(2), 4, spacing=STEP)
FINE = ls.uniform(ls.Scale(2), 6, spacing=STEP / 2)
ZOOMS = ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (4, 3), spacing=(None, STEP))
every_grid = pytest.mark.parametrize("grid", [SCALES, FINE, ZOOMS], ids=["scales", "fine scales", "SIM(2)"])
X64 = torch.float64


@pytest.mark.parametrize("kernel", ["dense", "local", "atrous", "pointwise"])
def test_samples_are_those_of_plain_loops(kernel: str) -> None:
    """Divide by the share inside; beyond the end read the nearest element."""
    basis = h_basis(SCALES, kernel)
    found = ls.functional.group_samples(basis, SCALES, SCALES, boundary="renormalise")[:, 0]
    places = SCALES.elements.log()[:, 0] / STEP
    centres = basis.grid.elements.log()[:, 0] / STEP
    for a, k in itertools.product(range(4), range(len(basis))):
        offsets = [(places[n] - places[a] - centres[k]) * STEP / basis.width for n in range(4)]
        values = [STEP * float(ls.bspline(offset, basis.degree)) for offset in offsets]
        if sum(values) > 1e-9:
            right = [basis.width * value / sum(values) for value in values]
        else:
            nearest = min(range(4), key=lambda n: abs(offsets[n]))
            right = [basis.width * (n == nearest) for n in range(4)]
        assert found[a, :, k].tolist() == pytest.approx(right, abs=1e-12)


@every_grid
@pytest.mark.parametrize("kernel", ["dense", "local"])
@pytest.mark.parametrize("boundary", ["renormalise", "replicate"])
def test_what_is_constant_along_h_stays_so(grid: ls.Grid, kernel: str, boundary: str) -> None:
    layer = ls.GConv(3, 4, 1, grid, h_basis=h_basis(grid, kernel), h_boundary=boundary, dtype=X64)
    x = torch.randn(2, 3, 1, 5, 5, dtype=X64).expand(-1, -1, len(grid), -1, -1)
    out = layer(x)
    assert (out - out[:, :, :1]).abs().max() < 1e-10 * out.abs().max()
    cut_off = ls.GConv(3, 4, 1, grid, h_basis=h_basis(grid, kernel), dtype=X64)(x)
    assert (cut_off - cut_off[:, :, :1]).abs().max() > 0.1 * cut_off.abs().max()


def test_inside_nothing_changes() -> None:
    """Elements whose kernels end before the grid does: to the last digit but rounding."""
    seven = ls.uniform(ls.Scale(2), 7, spacing=STEP)
    near = h_basis(seven, "local")
    whole, renormalised = (
        ls.functional.group_samples(near, seven, seven, boundary=boundary) for boundary in ("zero", "renormalise")
    )
    assert (whole - renormalised)[2:-2].abs().max() < 1e-15
    assert (whole - renormalised)[[0, 1, -2, -1]].abs().amax((1, 2, 3)).min() > 1e-3


@pytest.mark.parametrize("grid", [SCALES, ZOOMS], ids=["scales", "SIM(2)"])
@pytest.mark.parametrize("kernel", ["dense", "local"])
def test_replicated_is_a_longer_grid_with_features_repeated(grid: ls.Grid, kernel: str) -> None:
    """Twelve scales more on both sides, whose features are those of the nearest scale."""
    group, basis, ends = grid.group, h_basis(grid, kernel), torch.arange(-12.0, 13.0, dtype=X64)
    move = torch.zeros(len(ends), group.dim, dtype=X64)
    move[:, -1] = ends * STEP
    scale = group.log(grid.elements)[:, -1]
    elements, nearest = [], []
    for n, h in enumerate(grid.elements):
        inner = (scale[n] > scale.min() + 0.01) & (scale[n] < scale.max() - 0.01)
        for shift, by in zip(ends, move, strict=True):
            outward = shift == 0 or (shift > 0) == bool(scale[n] > scale.min() + 0.01)
            if shift == 0 or (outward and not inner):
                elements.append(group.product(h, group.exp(by)))
                nearest.append(n)
    long = ls.Grid(group, torch.stack(elements), grid.weights[nearest], grid.spacing)
    layer = ls.GConv(2, 3, 1, grid, h_basis=basis, h_boundary="replicate", dtype=X64)
    longer = ls.GConv(2, 3, 1, long, out_grid=grid, h_basis=basis, dtype=X64)
    longer.load_state_dict(layer.state_dict())
    x = torch.randn(2, 2, len(grid), 3, 3, dtype=X64)
    torch.testing.assert_close(layer(x), longer(x[:, :, nearest]), rtol=0, atol=1e-12)


def test_every_path_computes_it() -> None:
    """Zeros of samples decide how a layer is computed: those of renormalised ones."""
    layer = ls.GConv(2, 3, 5, SCALES, h_boundary="renormalise", bias=False, dtype=X64)
    x = torch.randn(2, 2, 4, 18, 17, dtype=X64)
    kernel = layer.kernel().flatten(0, 1).flatten(1, 2)
    right = nn.functional.conv2d(x.flatten(1, 2), kernel, padding=layer.borders.before).unflatten(1, (3, 4))
    for path in ("dense", "banded", "separable"):
        with ls.ops.use(path):
            torch.testing.assert_close(layer(x), right, rtol=0, atol=1e-12)


def test_learned_centres_start_as_fixed_ones() -> None:
    layer = ls.GConv(
        2, 3, 1, SCALES, h_basis=ls.SplineBasis(SCALES, trainable=True), h_boundary="renormalise", dtype=X64
    )
    fixed = ls.GConv(2, 3, 1, SCALES, h_boundary="renormalise", dtype=X64)
    torch.testing.assert_close(layer.samples()[1], fixed.h_samples, rtol=0, atol=1e-12)
    layer(torch.randn(2, 2, 4, 3, 3, dtype=X64)).square().sum().backward()
    assert layer.h_centres.grad.isfinite().all()
    assert layer.h_centres.grad.abs().max() > 0


def pink(images: int, size: int, seed: int) -> Tensor:
    """Noise of the same statistics at every scale, but for its first and last wavelength: power 1/k²."""
    draw = torch.Generator().manual_seed(seed)
    waves = torch.fft.fftfreq(size)
    wave = (waves.square().unsqueeze(1) + waves.square()).sqrt()
    wave[0, 0] = math.inf
    noise = torch.fft.fft2(torch.randn(images, 1, size, size, generator=draw)) * wave.reciprocal()
    noise = torch.fft.ifft2(noise).real
    return noise / noise.std()


def six_layers(grid: ls.Grid, kernel: str, boundary: str) -> nn.Module:
    options = {"padding": "same", "padding_mode": "circular", "bias": False}
    layers: list[nn.Module] = [ls.Lift(1, 6, 5, grid, **options), ls.nn.NormReLU(6)]
    for _ in range(5):
        basis = h_basis(grid, kernel)
        layers += [ls.GConv(6, 6, 5, grid, h_basis=basis, h_boundary=boundary, **options), ls.nn.NormReLU(6)]
    return nn.Sequential(*layers)


@torch.no_grad()
def power_ratio(grid: ls.Grid, kernel: str, boundary: str) -> float:
    """Largest over smallest power of the scales, after six layers with norm."""
    powers = []
    for seed in range(2):
        torch.manual_seed(seed)
        out = six_layers(grid, kernel, boundary)(pink(1, 95, seed))
        powers.append(out.square().mean((0, 1, 3, 4)).view(-1, 4 if grid == SCALES else 3).mean(0))
    power = torch.stack(powers).mean(0)
    return float(power.max() / power.min())


@pytest.mark.parametrize("grid", [SCALES, ZOOMS], ids=["scales", "SIM(2)"])
def test_power_stays_even_over_six_layers(grid: ls.Grid) -> None:
    """Beside pointwise kernels, which know no ends: what they show is the image's own."""
    own = power_ratio(grid, "pointwise", "zero")
    assert own < 1.5
    for kernel in ("dense", "local"):
        assert power_ratio(grid, kernel, "renormalise") < 1.3 * own
    assert power_ratio(grid, "dense", "zero") > 2 * own


def test_the_measure_tells_the_ends() -> None:
    """The error of each element: loops over what the layer gives, and largest where splines are cut off."""
    torch.manual_seed(0)
    seven = ls.uniform(ls.Scale(2), 7, spacing=STEP / 2)
    cut_off, renormalised = (
        nn.Sequential(
            ls.Lift(1, 4, 5, seven, padding="same"), nn.ReLU(),
            ls.GConv(4, 4, 1, seven, h_basis=h_basis(seven, "local"), h_boundary=boundary),
        )
        for boundary in ("zero", "renormalise")
    )  # fmt: skip
    renormalised.load_state_dict(cut_off.state_dict())
    step, options = seven.elements[1:2] / seven.elements[:1], {"size": 33, "images": 4}
    found, better = (measure_equivariance(net, seven, elements=step, **options) for net in (cut_off, renormalised))
    assert math.isnan(found.by_element[0]), "what would be one step before the first is not known"
    inside, ends = found.by_element[3:5], (found.by_element[1], found.by_element[6])
    assert max(inside) < 0.05 < 0.3 < min(ends)
    assert max(better.by_element[1:]) < 0.15
    every = torch.tensor(found.by_element[1:], dtype=X64)
    assert found.mean == pytest.approx(float(every.square().mean().sqrt()), rel=1e-9)
    answers = nn.Sequential(cut_off, ls.Project("max", seven))
    assert measure_equivariance(answers, seven, elements=step, **options).by_element is None


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match='h_boundary = \'mirror\', must be "zero", "renormalise" or'):
        ls.GConv(1, 1, 3, SCALES, h_boundary="mirror")
    with pytest.raises(ValueError, match=r"does not close, and GL2\(\) has 3: take \"renormalise\""):
        ls.GConv(1, 1, 1, ls.local(ls.GL2(), 9, (0.3, 0.4, 0.4, 1.5)), h_boundary="replicate")
    with pytest.raises(ValueError, match="is for fixed centres; trainable ones take"):
        ls.GConv(1, 1, 1, SCALES, h_basis=ls.SplineBasis(SCALES, trainable=True), h_boundary="replicate")
    sphere = ls.uniform(ls.Sphere(), 6)
    with pytest.raises(ValueError, match=r"h_boundary = 'renormalise', but Sphere\(\) has no ends"):
        ls.GConv(1, 1, 3, sphere, h_boundary="renormalise")
