"""Where groups and splines are singular, results are defined and gradients finite; half precision does not overflow."""

import math

import numpy as np
import pytest
import torch
from scipy.interpolate import BSpline
from torch import Tensor, nn

import liespline as ls
import oracle
from liespline import SO2, SO3, GConv, Grid, Lift, Scale, Sphere, SplineBasis, bspline
from own_group import DTYPES, ball, every_grid, name

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


@every_grid
def test_gradients_are_finite_with_centres_on_the_grid_itself(grid: Grid) -> None:
    """Centres on elements and samples: every Log is taken at e, at spline knots, on edges, at π."""
    bases = {
        "h_basis": SplineBasis(grid, trainable=True),
        "x_basis": SplineBasis(ls.lattice(grid.group.space_dim, 3), trainable=True),
    }
    layer = GConv(1, 2, 3, grid, **bases)  # type: ignore[arg-type]
    x = torch.randn(1, 1, len(grid), *[3] * grid.group.space_dim, requires_grad=True)
    inputs = [x, *layer.parameters()]
    out = layer(x)
    assert bool(out.isfinite().all())
    for gradient in torch.autograd.grad(out.square().sum(), inputs):
        assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_rotations_by_pi(dtype: torch.dtype) -> None:
    group, axes = SO3(), ball(3, 200, 1.0)
    axes = torch.cat([torch.eye(3).double(), -torch.eye(3).double(), axes / axes.norm(dim=-1, keepdim=True)])
    turns = (2 * axes.unsqueeze(-1) * axes.unsqueeze(-2) - torch.eye(3)).to(dtype).requires_grad_()  # exactly by π
    log, axes = group.log(turns), axes.to(dtype)
    tolerance = 1e-7 if dtype == torch.float64 else 1e-3
    assert float((log.detach().norm(dim=-1) - math.pi).abs().max()) < tolerance
    along = (log.detach() * axes).sum(-1).abs()
    assert float((along - math.pi).abs().max()) < tolerance, "either end of the axis, and no other direction"
    torch.testing.assert_close(group.exp(log), turns, rtol=0, atol=tolerance)
    (gradient,) = torch.autograd.grad(log.sum(), turns)
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_rounding_does_not_choose_a_direction_at_the_antipode(dtype: torch.dtype) -> None:
    """A spline that reaches the antipode differs between directions: it takes the same one however that is rounded."""
    basis = SplineBasis(Grid(Sphere(), torch.tensor([[0, 0, 1.0]]), torch.ones(1), 1.0), scale=math.pi / 2)
    angle = torch.linspace(0, 6, 7, dtype=dtype)
    few = 8 * torch.finfo(dtype).eps
    near = torch.stack((few * angle.cos(), few * angle.sin(), -torch.ones_like(angle)), -1)
    values = basis(near)
    torch.testing.assert_close(values, values[:1].expand_as(values), rtol=0, atol=10 * few)
    away = torch.stack((1e-2 * angle.cos(), 1e-2 * angle.sin(), -torch.full_like(angle, math.sqrt(1 - 1e-4))), -1)
    assert float(basis(away).std()) > 1e-4, "there it does differ"


@pytest.mark.parametrize("d", [1, 2, 3])
def test_scales_towards_zero(d: int) -> None:
    group = Scale(d)
    h = torch.tensor([[1e-15], [1e-3], [1e15]], requires_grad=True)
    results = group.log(h), group.inverse(h), group.product(h, group.inverse(h)), group.offset(h, torch.ones(1))
    for result in results:
        (gradient,) = torch.autograd.grad(result.sum(), h, retain_graph=True)
        assert bool(result.isfinite().all())
        assert bool(gradient.isfinite().all())
    torch.testing.assert_close(results[0], h.detach().double().log().float())
    with pytest.raises(ValueError, match=r"\[0\.0\] is not an element of Scale.*positive and finite"):
        group.log(torch.zeros(1))


@pytest.mark.parametrize("smallest", [0.3, 1e-2, 1e-4])
def test_windows_of_small_scales_shrink_to_a_sample_with_their_factor(smallest: float) -> None:
    """Alone or beside scale 1, an element's kernel is the same: k(0)/s^d, not a Dirac δ."""
    small = torch.tensor([[smallest]])
    pair = Grid(Scale(2), torch.cat([small, torch.ones(1, 1)]), torch.ones(2), 1.0)
    torch.manual_seed(0)
    both = Lift(1, 2, 3, pair, dtype=torch.float64)
    alone = Lift(1, 2, 3, Grid(Scale(2), small, torch.ones(1), 1.0), dtype=torch.float64)
    with torch.no_grad():
        alone.weight.copy_(both.weight)
    kernel = both.kernel()[:, 0, :, 1:2, 1:2]
    torch.testing.assert_close(alone.kernel()[:, 0], kernel)
    np.testing.assert_allclose(both.kernel().detach(), oracle.kernel(both), rtol=1e-10, atol=0)
    assert bool(both(torch.randn(1, 1, 5, 5, dtype=torch.float64)).isfinite().all())


@pytest.mark.parametrize("degree", range(8))
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_splines_at_their_knots(degree: int, dtype: torch.dtype) -> None:
    knots = np.arange(degree + 2) - (degree + 1) / 2
    exact = BSpline.basis_element(knots, extrapolate=False)
    x = torch.tensor(knots, dtype=dtype).requires_grad_()
    value = bspline(x, degree)
    expected = np.nan_to_num(exact(knots))
    expected[-1] = 0  # the right end belongs to no piece
    np.testing.assert_allclose(value.detach(), expected, rtol=0, atol=1e-6 if dtype == torch.float32 else 1e-14)
    if degree == 0:
        return
    (gradient,) = torch.autograd.grad(value.sum(), x)
    if degree == 1:  # a kink: any slope between those of its two sides
        assert float(gradient.abs().max()) <= 1
        return
    slope = np.nan_to_num(exact.derivative()(knots))
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-13)


@pytest.mark.parametrize("degree", [2, 3, 4])
def test_centres_on_knots_learn_by_the_true_gradient(degree: int) -> None:
    grid = ls.uniform(SO2(), 4)
    torch.manual_seed(degree)
    x_basis = SplineBasis(ls.lattice(2, 3), degree=degree, trainable=True)
    h_basis = SplineBasis(grid, degree=degree, trainable=True)
    layer = GConv(1, 1, 3, grid, x_basis=x_basis, h_basis=h_basis, dtype=torch.float64)
    x = torch.randn(1, 1, 4, 3, 3, dtype=torch.float64)

    def run(x_centres: Tensor, h_centres: Tensor) -> Tensor:
        centres = {"x_centres": x_centres, "h_centres": h_centres}
        return torch.func.functional_call(layer, centres, (x,))

    centres = [layer.get_parameter(f"{axis}_centres").detach().requires_grad_() for axis in "xh"]
    assert torch.autograd.gradcheck(run, centres, atol=1e-5)


@pytest.fixture(scope="module")
def wide() -> tuple[nn.Module, Tensor, list[Tensor]]:
    """64 elements and 256 channels on either side of each sum, and what float32 makes of it."""
    torch.manual_seed(0)
    grid = ls.uniform(SO2(), 64)
    near = SplineBasis(ls.local(SO2(), 3, grid.spacing))
    net = nn.Sequential(
        *(Lift(3, 256, 3, grid, padding=1), nn.ReLU()),
        *(GConv(256, 256, 1, grid, x_basis=SplineBasis(ls.disc(1)), h_basis=near), nn.ReLU()),
        *(GConv(256, 3, 3, grid, padding=1), nn.ReLU()),
        *(GConv(3, 256, 3, grid, padding=1, h_basis=near), ls.Project("mean", grid)),
    )
    x = torch.randn(1, 3, 3, 3)
    return net, x, _outcome(net, x, None)


def _outcome(net: nn.Module, x: Tensor, dtype: torch.dtype | None) -> list[Tensor]:
    """The output, and the gradients of all parameters for gradients of size 1 at the output."""
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        out = net(x)
    direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(out.dtype)
    return [out.detach().float(), *torch.autograd.grad(out, list(net.parameters()), direction)]


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.bfloat16, 3e-2), (torch.float16, 1e-2)], ids=str)
def test_autocast_does_not_overflow(wide: tuple[nn.Module, Tensor, list[Tensor]], dtype, tolerance) -> None:
    net, x, exact = wide
    for found, right in zip(_outcome(net, x, dtype), exact, strict=True):
        assert bool(found.isfinite().all())
        assert float((found - right).norm() / right.norm()) < tolerance
