"""The identities of appendix C, and other networks as special cases."""

import math

import pytest
import torch
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
        group,
        group.exp(a + 0.3 + 0.37 * step),
        step**group.dim * group.haar_density(a + 0.3 + 0.37 * step),
        step,
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
