"""B-splines against SciPy, partitions of unity, bases against the paper's formulas in plain loops, and fits."""

import copy
import dataclasses
import functools
import math
import pickle

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline

import liespline as ls
import oracle
from liespline import SO2, SO3, Grid, Scale, Sphere, SplineBasis, bspline, disc, lattice, local, repulsion, uniform
from own_group import DTYPES, SPACES, Triangular, ball, name, planted, vectors

DEGREES = range(8)
each_degree = pytest.mark.parametrize("degree", DEGREES)


def scipys(degree: int) -> BSpline:
    return BSpline.basis_element(np.arange(degree + 2) - (degree + 1) / 2, extrapolate=False)


def reference(x: np.ndarray, degree: int) -> np.ndarray:
    """Return Bⁿ(x) by SciPy, which says NaN outside the support."""
    return np.nan_to_num(scipys(degree)(x))


def samples(degree: int, n: int = 4001) -> torch.Tensor:
    """Return points over the support and a little beyond, none of them a knot."""
    return torch.linspace(-(degree + 1.7) / 2, (degree + 1.7) / 2, n, dtype=torch.float64) + 1e-7


@pytest.mark.parametrize("degree", [*DEGREES, 9, 10, 14])  # 10 on are made when asked for
def test_bspline_against_scipy(degree):
    x = samples(degree)
    np.testing.assert_allclose(bspline(x, degree), reference(x.numpy(), degree), rtol=0, atol=1e-13)
    single = x.float()
    found = bspline(single, degree)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, reference(single.double().numpy(), degree), rtol=0, atol=2e-6)


@each_degree
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_bspline_is_exactly_zero_outside_its_support(degree, dtype):
    end = torch.tensor((degree + 1) / 2, dtype=dtype)
    beyond = torch.tensor([1e-3, 1, 1e6, 1e30, math.inf], dtype=dtype)
    x = torch.cat([end + beyond, -end - beyond, end.nextafter(end * 2).reshape(1), end.reshape(1)]).requires_grad_()
    value = bspline(x, degree)
    assert not value.any(), "the right end itself is outside"
    if degree:
        (slope,) = torch.autograd.grad(value.sum(), x)
        assert not slope.any(), "and far away nothing overflows"
    assert float(bspline(0.9 * end, degree)) > 0
    assert float(bspline(-end, degree)) == (degree == 0), "the box alone holds its left end"


@pytest.mark.parametrize("degree", range(1, 8))
def test_derivative_by_autograd(degree):
    x = samples(degree).requires_grad_()
    (slope,) = torch.autograd.grad(bspline(x, degree).sum(), x, create_graph=degree > 1)
    expected = np.nan_to_num(scipys(degree).derivative()(x.detach().numpy()))
    np.testing.assert_allclose(slope.detach(), expected, rtol=0, atol=1e-12)
    if degree > 1:
        (curvature,) = torch.autograd.grad(slope.sum(), x)
        expected = np.nan_to_num(scipys(degree).derivative(2)(x.detach().numpy()))
        np.testing.assert_allclose(curvature, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("degree", range(6))
def test_partition_of_unity_on_every_circle(degree):
    h = math.pi * (2 * torch.rand(400, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1)
    worst = {n: float((SplineBasis(uniform(SO2(), n), degree=degree)(h).sum(-1) - 1).abs().max()) for n in range(1, 33)}
    assert {n: error for n, error in worst.items() if error > 1e-12} == {}
    open_ended = uniform(planted(SO2(), period=None, volume=None), 2)
    assert float((SplineBasis(open_ended, degree=5)(h).sum(-1) - 1).abs().max()) > 0.1, "as it would be on a line"


@pytest.mark.parametrize("degree", range(6))
def test_partition_of_unity_inside_the_covered_range(degree):
    n, step, margin = 12, 0.37, (degree - 1) / 2  # centres 0 … n − 1 cover [margin, n − 1 − margin]
    t = margin + (n - 1 - 2 * margin) * torch.rand(300, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    on_scales = SplineBasis(uniform(Scale(2), n, spacing=step), degree=degree)
    np.testing.assert_allclose(on_scales((step * t).exp().unsqueeze(-1)).sum(-1), 1, rtol=0, atol=1e-12)
    outside = torch.tensor([[math.exp(step * (n - 1 + (degree + 1) / 2 - 0.1))]], dtype=torch.float64)
    assert float(on_scales(outside).sum()) < 0.999 or degree == 0
    for d in (1, 2, 3):
        basis = SplineBasis(lattice(d, 8, spacing=step), degree=degree)
        reach = step * (7 / 2 - max(margin, 0)) * 0.999
        x = reach * (2 * torch.rand(200, d, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) - 1)
        np.testing.assert_allclose(basis(x).sum(-1), 1, rtol=0, atol=1e-12)


GRIDS = {
    "R²": (disc(5), 0.8),
    "SO(2)": (uniform(SO2(), 3), 1.4),  # wider than the circle: turns add up
    "SO(3)": (repulsion(SO3(), 20), 0.8),
    "S²": (repulsion(Sphere(), 20), 0.8),
    "scales": (local(Scale(2), 9, 0.3), 0.8),
    "triangular": (local(Triangular(), 7, 0.4), 0.8),
}


@pytest.mark.parametrize("space", GRIDS)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_basis_against_the_formula_in_loops(space, degree):
    """B_i(h) = Π_k Bⁿ(Log(h_i⁻¹h)_k / s) (defs. splineRd, splineH, eq. splineS2)."""
    grid, wider = GRIDS[space]
    basis = SplineBasis(grid, scale=wider * grid.spacing, degree=degree)
    spline = {"R²": oracle.x_spline, "S²": oracle.sphere_spline}.get(space, oracle.h_spline)
    h = grid.group.exp(0.6 * vectors(grid.group, 12, seed=21))
    expected = [[spline(basis, centre, one) for centre in grid.elements.numpy()] for one in h.numpy()]
    np.testing.assert_allclose(basis(h), expected, rtol=0, atol=1e-10)
    assert np.count_nonzero(expected) >= 12, "not a comparison of zeros"


@pytest.mark.parametrize("group", SPACES, ids=name)
def test_basis_broadcasts_and_follows_dtype_and_device(group):
    basis = SplineBasis(local(group, {0: 1, 1: 3, 2: 5, 3: 7}[group.dim], 0.5))
    h = group.exp(vectors(group, 6)).unflatten(0, (2, 3))
    assert basis(h).shape == (2, 3, len(basis))
    torch.testing.assert_close(basis(h)[1, 2], basis(h[1, 2]))
    torch.testing.assert_close(basis(h.float()), basis(h).float(), rtol=0, atol=2e-6)
    for dtype in DTYPES:
        assert basis(h.to(dtype)).dtype == dtype
        assert basis(h.to(dtype).to("meta")).device.type == "meta"


@pytest.mark.parametrize("group", SPACES[1:], ids=name)
def test_centres_can_be_learned(group):
    """Given centres replace the grid's, and the gradient in their log-coordinates is that of finite differences."""
    basis = SplineBasis(local(group, {1: 3, 2: 5, 3: 7}[group.dim], 0.7), trainable=True)
    log = group.log(basis.grid.elements) + 0.1 * ball(group.dim, len(basis), 1.0, seed=3)
    h = group.exp(0.4 * vectors(group, 5, seed=8))
    moved = Grid(group, group.exp(log), basis.grid.weights, 0.7)
    torch.testing.assert_close(basis(h, basis.centres(log)), SplineBasis(moved)(h))
    assert torch.autograd.gradcheck(lambda a: basis(h, basis.centres(a)), log.requires_grad_())


@each_degree
def test_compile_traces_bspline_and_its_derivative(degree):
    torch.compiler.reset()
    compiled = torch.compile(functools.partial(bspline, degree=degree), backend="aot_eager", fullgraph=True)
    x, twin = (samples(degree, 101).requires_grad_() for _ in range(2))
    found, right = compiled(x), bspline(twin, degree)
    torch.testing.assert_close(found, right)
    if degree:
        torch.testing.assert_close(*(torch.autograd.grad(y.sum(), at)[0] for y, at in ((found, x), (right, twin))))


def test_bases_are_values():
    basis = SplineBasis(uniform(SO2(), 8), degree=2)
    assert (basis.scale, len(basis)) == (basis.grid.spacing, 8)
    assert basis.reach == pytest.approx(1.5 * math.tau / 8)
    again = SplineBasis(uniform(SO2(), 8), scale=math.tau / 8, degree=2)
    for twin in (copy.deepcopy(basis), pickle.loads(pickle.dumps(basis)), again):
        assert twin == basis
        assert hash(twin) == hash(basis)
    for change in ({"grid": uniform(SO2(), 9)}, {"scale": 1.0}, {"degree": 3}, {"trainable": True}):
        assert dataclasses.replace(basis, **change) != basis


CASES = {
    "circle": (uniform(SO2(), 9), 400, 1.0),
    "plane": (lattice(2, 5), 800, 2.0),
    "rotations": (repulsion(SO3(), 30), 3000, 1.0),
    "sphere": (repulsion(Sphere(), 60), 1500, 1.0),
    "triangular": (local(Triangular(), 7, 0.5), 1500, 0.6),
}


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_fit_recovers_the_coefficients(case, dtype):
    grid, count, reach = CASES[case]
    basis = SplineBasis(grid, degree=2)
    h = grid.group.exp(reach * vectors(grid.group, count, dtype))
    coefficients = noise(len(grid), 2, 3).to(dtype)
    values = torch.einsum("pn,nij->pij", basis(h), coefficients)
    found = basis.fit(h, values)
    assert (found.shape, found.dtype) == (coefficients.shape, dtype)
    torch.testing.assert_close(found, coefficients, rtol=0, atol=1e-8 if dtype == torch.float64 else 5e-3)


@pytest.mark.parametrize(("samples", "degree"), [(300, 3), (12, 1)])
def test_fit_of_noise_is_numpys_least_squares(samples, degree):
    """Of few samples, which have many solutions, the smallest one."""
    basis = SplineBasis(lattice(2, 5), degree=degree)
    h, values = (3 if samples == 300 else 1) * noise(samples, 2), noise(samples, seed=1)
    expected = np.linalg.lstsq(basis(h).numpy(), values.numpy(), rcond=None)[0]
    np.testing.assert_allclose(basis.fit(h, values), expected, rtol=0, atol=1e-9)


def test_modules_show_what_users_call_and_no_more():
    for module in (ls.functional, ls.grids, ls.groups, ls.models, ls.nn, ls.optim, ls.splines, ls.testing):
        assert all(getattr(module, name).__module__.startswith("liespline.") for name in module.__all__)


def test_a_star_import_leaves_torchs_nn_in_place():
    names: dict[str, object] = {}
    exec("from torch import nn, optim\nfrom liespline import *", names)
    assert (names["nn"], names["optim"]) == (torch.nn, torch.optim)
    assert {"GConv", "Lift", "Project", "uniform", "export"} < set(names)
