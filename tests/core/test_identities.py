"""The identities of appendix C, other networks as special cases, and kernels on R³ ⋊ S², symmetric about its axis."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import liespline as ls

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


def test_the_scale_lift_is_blur_then_dilate() -> None:
    """App. deepscalespace: (k ⋆ f)(x, s) = Σ_i c_i (B_s ⋆ f)(x + s x_i), exactly where s x_i is whole."""
    grid = ls.uniform(ls.Scale(2), 3, spacing=math.log(2))  # scales 1, 2, 4
    centres = ls.lattice(2, 3)
    layer = ls.Lift(1, 1, 5, grid, x_basis=ls.SplineBasis(centres), bias=False, dtype=torch.float64, padding=2)
    f = torch.randn(1, 1, 33, 33, dtype=torch.float64)
    out = layer(f)
    for a, s in enumerate((1, 2, 4)):
        reach = 2 * s
        taps = ls.bspline(torch.arange(-reach, reach + 1, dtype=torch.float64) / s, 3)
        blur = torch.outer(taps, taps) / s**2
        scale_space = F.conv2d(F.pad(f, (3 * s,) * 4), blur[None, None], padding=0)
        coefficients = layer.weight.reshape(1, 1, 3, 3)  # the lattice runs over rows, then columns
        dilated = F.conv2d(scale_space, coefficients, dilation=s)
        assert (out[:, :, a] - dilated).abs().max() < 1e-12


def test_degree_one_with_moved_centres_is_bilinear_deformable_convolution() -> None:
    """Section 3.3: out(x) = Σ_i c_i f(x + x_i), f read by bilinear interpolation at positions that are learned."""
    lattice = ls.lattice(2, 3)
    moved = lattice.elements + 0.4 * torch.rand(9, 2, dtype=torch.float64)
    basis = ls.SplineBasis(ls.Grid(lattice.group, moved, lattice.weights, 1.0), degree=1, trainable=True)
    layer = ls.Lift(1, 1, 5, ls.uniform(ls.Trivial(2), 1), x_basis=basis, bias=False, dtype=torch.float64)
    f = torch.randn(1, 1, 12, 12, dtype=torch.float64)
    axes = torch.arange(2, 10, dtype=torch.float64)
    points = torch.stack(torch.meshgrid(axes, axes, indexing="ij"), -1)
    expected = torch.zeros(1, 1, 8, 8, dtype=torch.float64)
    for c, x in zip(layer.weight[0, 0], moved, strict=True):
        where = (points + x) / (11 / 2) - 1  # to [−1, 1], as grid_sample counts
        expected = expected + c * F.grid_sample(f, where.flip(-1)[None], align_corners=True)
    assert (layer(f)[:, :, 0] - expected).abs().max() < 1e-12
    layer(f).sum().backward()
    gradient = layer.get_parameter("x_centres").grad
    assert gradient is not None
    assert (gradient.abs() > 0).all()


@pytest.mark.parametrize("group", [ls.SO2(), ls.Scale(2), ls.SO3()])
def test_group_correlation_is_gauge_correlation(group: ls.Group) -> None:
    """App. relatedgauge: ∫ K(g⁻¹h) F(h) dh = ∫ K(Exp a) F(g Exp a) density(a) da for localised kernels.

    The left side is a sum over elements around g, the right one over the algebra: a fine quadrature of each on its own.
    """
    step = 0.08
    per_axis = 31 if group.dim == 1 else 15
    basis = ls.SplineBasis(ls.local(group, 1, 0.25), degree=3)

    def function(h: torch.Tensor) -> torch.Tensor:  # smooth on the group
        return torch.sin(2 * group.matrix(h).flatten(-2).cumsum(-1)).sum(-1)

    g = group.exp(0.3 * torch.ones(group.dim, dtype=torch.float64))
    axis = (torch.arange(per_axis, dtype=torch.float64) - (per_axis - 1) / 2) * step
    a = torch.cartesian_prod(*[axis] * group.dim).reshape(-1, group.dim)
    density = group.haar_density(a)
    gauge = (basis(group.exp(a))[:, 0] * function(group.product(g, group.exp(a))) * density).sum() * step**group.dim
    # left side: the same Haar integral on a grid that is not centred on g
    shifted = ls.Grid(
        group, group.exp(a + 0.3 + 0.37 * step), step**group.dim * group.haar_density(a + 0.3 + 0.37 * step), step
    )
    correlation = (
        basis(group.relative(g, shifted.elements))[:, 0] * function(shifted.elements) * shifted.weights
    ).sum()
    assert correlation == pytest.approx(float(gauge), rel=2e-3)
    assert abs(float(gauge)) > 1e-4


def test_a_trivial_group_is_a_plain_convolution() -> None:
    grid = ls.uniform(ls.Trivial(2), 1)
    layer = ls.GConv(3, 4, 3, grid, x_basis=ls.SplineBasis(ls.lattice(2, 3), degree=1), padding=1, dtype=torch.float64)
    x = torch.randn(2, 3, 1, 6, 7, dtype=torch.float64)
    weight = layer.weight.reshape(4, 3, 3, 3)  # degree 1 on the lattice: a coefficient is a tap
    assert (layer(x)[:, :, 0] - F.conv2d(x[:, :, 0], weight, layer.bias, padding=1)).abs().max() < 1e-12


@pytest.mark.parametrize("degrees", [17.0, 123.4])
def test_sphere_kernels_are_symmetric_about_the_reference_axis(degrees: float) -> None:
    """K(x, n) = K(R_z x, R_z n) at any angle, not only those of the lattice (theorem, item 3)."""
    generator = torch.Generator().manual_seed(0)
    x_basis = ls.SplineBasis(ls.disc(3, 3))
    h_basis = ls.SplineBasis(ls.repulsion(ls.Sphere(), 7))
    x = torch.randn(1, 9, 3, dtype=torch.float64, generator=generator)
    n = torch.nn.functional.normalize(torch.randn(1, 9, 3, dtype=torch.float64, generator=generator), dim=-1)
    coefficients = torch.randn(len(x_basis), len(h_basis), dtype=torch.float64, generator=generator)
    turn = ls.SO3().exp(torch.tensor([0.0, 0, math.radians(degrees)], dtype=torch.float64))

    def kernel(x: Tensor, n: Tensor, axial: int | None) -> Tensor:
        one = torch.ones(1, 9, dtype=torch.float64)
        left = ls.functional.sample(x_basis, x, one, axial=axial)
        right = ls.functional.sample(h_basis, n, one, axial=axial)
        return torch.einsum("ampi,ampj,ij->ap", left, right, coefficients)

    still, turned = kernel(x, n, 4), kernel(x @ turn.T, n @ turn.T, 4)
    assert (still - turned).abs().max() < 1e-13
    assert still.abs().max() > 1e-2
    assert (kernel(x, n, None) - kernel(x @ turn.T, n @ turn.T, None)).abs().max() > 1e-2  # the planted fault


@pytest.mark.parametrize(("k", "n", "kept"), [(3, 12, 3), (7, 200, 10)])
def test_as_many_frequencies_are_kept_as_the_basis_needs(k: int, n: int, kept: int) -> None:
    """What the kernel leaves out of the average over turns about the axis is below 1e-3 of it, in the mean square.

    Of the smaller one 1.5 % is left out by two frequencies, and 0.07 % by three.
    """
    out = ls.Grid(ls.Sphere(), torch.tensor([[0.0, 0, 1]]), torch.ones(1), 1.0)
    grid = ls.repulsion(ls.Sphere(), 10)
    h_basis = ls.SplineBasis(ls.repulsion(ls.Sphere(), n))
    layer = ls.GConv(1, 1, k, grid, out_grid=out, h_basis=h_basis, dtype=torch.float64)
    assert layer.axial == kept
    y = torch.cartesian_prod(*[torch.arange(k, dtype=torch.float64) - (k - 1) / 2] * 3)[:: 21 if k == 7 else 1]

    def product(kept: int) -> Tensor:
        one = torch.ones(1, len(y), dtype=torch.float64)
        left = ls.functional.sample(layer.x_basis, y[None], one, axial=kept)
        right = ls.functional.sample(h_basis, grid.elements[None], one[:, :10], axial=kept)
        return torch.einsum("ampi,amqj->piqj", left, right)

    found, fewer, exact = product(layer.axial), product(2), torch.zeros(())
    turns = 90
    for i in range(turns):
        r = ls.SO3().exp(torch.tensor([0.0, 0, i * math.tau / turns], dtype=torch.float64))
        exact = exact + torch.einsum("pi,qj->piqj", layer.x_basis(y @ r.T), h_basis(grid.elements @ r.T)) / turns
    assert float((found - exact).norm() / exact.norm()) < 1.5e-3
    assert float((fewer - exact).norm() / exact.norm()) > 2e-3, "two would not do"


def test_functions_on_the_sphere_lift_to_so3_and_correlate_there() -> None:
    torch.manual_seed(2)
    sphere, rotations = ls.uniform(ls.Sphere(), 6), ls.uniform(ls.SO3(), 24)
    centres = ls.SplineBasis(ls.repulsion(ls.Sphere(), 9))
    lift = ls.GConv(2, 3, None, sphere, out_grid=rotations, h_basis=centres, dtype=torch.float64)
    net = nn.Sequential(lift, nn.ReLU(), ls.GConv(3, 2, None, rotations, dtype=torch.float64))
    f = torch.randn(2, 2, 6, dtype=torch.float64)
    # the formula: out(R) = Σ_n w(n) k(R⁻¹n) f(n)
    k = torch.stack([centres(sphere.elements @ r) for r in rotations.elements])  # (24, 6, 9); n @ R is R⁻¹n
    expected = torch.einsum("ocj,anj,n,bcn->boa", lift.weight[:, :, 0], k, sphere.weights, f)
    assert (lift(f) - expected).abs().max() < 1e-12
    for r in rotations.elements:
        on_sphere = [int((r.T @ n - sphere.elements).abs().amax(1).argmin()) for n in sphere.elements]
        on_group = [int((r.T @ h - rotations.elements).abs().amax((1, 2)).argmin()) for h in rotations.elements]
        assert (net(f[:, :, on_sphere]) - net(f)[:, :, on_group]).abs().max() < 1e-12
