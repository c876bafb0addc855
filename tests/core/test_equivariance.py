"""How equivariant layers are: exactly for symmetries of the lattice, and by a measured number for all others."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.functional import left_regular
from liespline.groups import Element
from liespline.testing import equivariance_error

QUARTER = torch.tensor([math.pi / 2], dtype=torch.float64)


def network(grid: ls.Grid, kernel_size: int, h_basis: ls.SplineBasis | None = None, **options: object) -> nn.Sequential:
    first = ls.Lift(1, 4, kernel_size, grid, dtype=torch.float64, **options)  # type: ignore[arg-type]
    second = ls.GConv(4, 4, kernel_size, grid, h_basis=h_basis, dtype=torch.float64, **options)  # type: ignore[arg-type]
    return nn.Sequential(first, nn.ReLU(), second)


@pytest.mark.parametrize("n", [4, 8, 12, 16])
def test_quarter_turns_are_exact(n: int) -> None:
    torch.manual_seed(n)
    grid = ls.uniform(ls.SO2(), n)
    net = network(grid, 5, padding=2)
    x = torch.randn(2, 1, 9, 9, dtype=torch.float64)
    turned = torch.rot90(net(x), 1, (-2, -1)).roll(n // 4, 2)  # L_h moves values to h·h′: along H by a quarter
    assert (net(torch.rot90(x, 1, (-2, -1))) - turned).abs().max() < 1e-12


def test_shifts_are_exact() -> None:
    torch.manual_seed(0)
    net = network(ls.uniform(ls.SO2(), 7), 5, padding=2, padding_mode="circular")
    x = torch.randn(1, 1, 11, 12, dtype=torch.float64)
    assert (net(x.roll((3, -5), (-2, -1))) - net(x).roll((3, -5), (-2, -1))).abs().max() < 1e-12


def rotate(x: Tensor, r: Tensor) -> Tensor:
    """Turn the last three axes of x by a signed permutation matrix, by indexing."""
    n = x.shape[-1]
    out = torch.empty_like(x)
    for p in itertools.product(range(n), repeat=3):
        centred = torch.tensor(p, dtype=torch.float64) - (n - 1) / 2
        source = (r.T @ centred + (n - 1) / 2).round().long()
        out[..., p[0], p[1], p[2]] = x[..., source[0], source[1], source[2]]
    return out


@pytest.mark.parametrize("which", ["SO3 dense", "SO3 local", "Sphere", "Sphere local"])
def test_the_24_octahedral_rotations_are_exact(which: str) -> None:
    torch.manual_seed(1)
    rotations = ls.uniform(ls.SO3(), 24).elements
    grid = ls.uniform(ls.SO3(), 24) if "SO3" in which else ls.uniform(ls.Sphere(), 6)
    h_basis = ls.SplineBasis(ls.local(grid.group, 2 * grid.group.dim + 1, 0.8)) if "local" in which else None
    net = network(grid, 4, h_basis)
    x = torch.randn(1, 1, 7, 7, 7, dtype=torch.float64)
    still = net(x)
    for r in rotations:
        if "SO3" in which:
            source = [int((r.T @ h - grid.elements).abs().amax((1, 2)).argmin()) for h in grid.elements]
        else:
            source = [int((r.T @ n - grid.elements).abs().amax(1).argmin()) for n in grid.elements]
        assert (net(rotate(x, r)) - rotate(still[:, :, source], r)).abs().max() < 1e-12 * still.abs().max().clamp_min(1)


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


def test_the_symmetric_kernel_is_the_average_over_turns() -> None:
    """Against a direct average over many angles, up to the frequencies that are kept."""
    x_basis, h_basis = ls.SplineBasis(ls.disc(3, 3)), ls.SplineBasis(ls.local(ls.Sphere(), 5, 0.9))
    x = torch.tensor([[[0.6, 0.3, -0.4]]], dtype=torch.float64)
    n = torch.nn.functional.normalize(torch.tensor([[[0.3, -0.5, 0.8]]], dtype=torch.float64), dim=-1)
    one = torch.ones(1, 1, dtype=torch.float64)
    found = torch.einsum(
        "ampi,ampj->ij",
        ls.functional.sample(x_basis, x, one, axial=4),
        ls.functional.sample(h_basis, n, one, axial=4),
    )
    total = torch.zeros_like(found)
    for k in range(360):
        r = ls.SO3().exp(torch.tensor([0.0, 0, k * math.pi / 180], dtype=torch.float64))
        total += x_basis(x[0, 0] @ r.T).unsqueeze(1) * h_basis(n[0, 0] @ r.T)
    assert (found - total / 360).abs().max() < 2e-3 * (total / 360).abs().max()


@pytest.mark.parametrize(("k", "n"), [(3, 12), (7, 200)])
def test_as_many_frequencies_are_kept_as_the_basis_needs(k: int, n: int) -> None:
    """What the kernel leaves out of the average over turns about the axis is below 1e-3 of it, in the mean square."""
    out = ls.Grid(ls.Sphere(), torch.tensor([[0.0, 0, 1]]), torch.ones(1), 1.0)
    grid = ls.repulsion(ls.Sphere(), 20)
    h_basis = ls.SplineBasis(ls.repulsion(ls.Sphere(), n))
    layer = ls.GConv(1, 1, k, grid, out_grid=out, h_basis=h_basis, dtype=torch.float64)
    assert layer.axial is not None
    y = torch.cartesian_prod(*[torch.arange(k, dtype=torch.float64) - (k - 1) / 2] * 3)[:: 7 if k == 7 else 1]

    def product(kept: int) -> Tensor:
        one = torch.ones(1, len(y), dtype=torch.float64)
        left = ls.functional.sample(layer.x_basis, y[None], one, axial=kept)
        right = ls.functional.sample(h_basis, grid.elements[None], one[:, :20], axial=kept)
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


# window: the lift alone, and lift → ReLU → g-corr; escnn's g-corr: 1.1e-2, 1.8e-2, 1.7e-2
@pytest.mark.parametrize(("window", "lift", "gconv"), [(5, 9e-3, 1.4e-2), (7, 3e-3, 7e-3), (9, 2e-3, 6e-3)])
def test_se2_at_twelve_orientations(window: int, lift: float, gconv: float) -> None:
    grid = ls.uniform(ls.SO2(), 12)
    errors = []
    for seed in range(12):
        torch.manual_seed(seed)
        net = network(grid, window)
        measure = {"size": 2 * window + 1, "images": 4, "seed": seed}
        errors.append((equivariance_error(net[0], grid, **measure), equivariance_error(net, grid, **measure)))
    assert statistics.median(e[0] for e in errors) <= lift
    assert statistics.median(e[1] for e in errors) <= gconv


class Interior(nn.Module):
    """A network seen away from the ends of its grid, where kernels do not miss neighbours."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[:, :, 1:-1]


def test_scale_at_steps_of_sqrt2() -> None:
    grid = ls.uniform(ls.Scale(2), 5, spacing=0.5 * math.log(2))
    inner = ls.Grid(grid.group, grid.elements[1:-1], grid.weights[1:-1], grid.spacing)
    errors = []
    for seed in range(5):
        torch.manual_seed(seed)
        local = ls.SplineBasis(ls.local(ls.Scale(2), 3, grid.spacing), degree=1)
        net = Interior(network(grid, 5, local))
        errors.append(equivariance_error(net, inner, size=61, elements=grid.elements[1:2], images=2, blur=3.0))
    assert statistics.median(errors) <= 2e-2


@pytest.mark.parametrize(("window", "centres"), [(5, ls.lattice(2, 5)), (3, ls.disc(3))])
def test_what_scalings_cut_off_costs_equivariance_and_is_told(window: int, centres: ls.Grid) -> None:
    """The paper's 25 centres of degree 2 in 5×5, and nine in 3×3."""
    grid = ls.uniform(ls.Scale(2), 5, spacing=0.5 * math.log(2))
    basis = ls.SplineBasis(centres, degree=2 if window == 5 else 3)
    ls.nn.arguments._told.clear()
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="energy falls outside"):
        cut = ls.Lift(1, 4, window, grid, x_basis=basis, dtype=torch.float64)
    kept = ls.Lift(1, 4, 5, grid, dtype=torch.float64)
    measure = {"size": 61, "elements": grid.elements[1:2], "images": 2, "blur": 3.0}
    assert equivariance_error(cut, grid, **measure) > 4e-2
    assert equivariance_error(kept, grid, **measure) < 1e-2


def test_se3_at_sixty_rotations() -> None:
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO3(), 60)
    first = ls.Lift(1, 1, 5, grid, dtype=torch.float64)
    net = nn.Sequential(first, nn.ReLU(), ls.GConv(1, 1, 5, grid, dtype=torch.float64))
    error = equivariance_error(net, grid, size=9, elements=grid.elements[[3, 17, 40]], images=2)
    assert error <= 2e-2


def test_the_measure_sees_a_network_that_is_not_equivariant() -> None:
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), 12)
    lift = ls.Lift(1, 4, 5, grid, dtype=torch.float64)
    assert equivariance_error(lift, grid, size=11) < 1e-2
    lift.x_samples = lift.x_samples.flip(0)  # planted fault: elements in the wrong order
    assert equivariance_error(lift, grid, size=11) > 0.1


def test_left_regular_is_a_representation_that_layers_commute_with() -> None:
    torch.manual_seed(0)
    grid, group = ls.uniform(ls.SO2(), 4), ls.SO2()
    f = torch.randn(2, 3, 9, 9, dtype=torch.float64)
    shift = torch.tensor([2.0, -1.0], dtype=torch.float64)
    g = Element(shift, QUARTER)
    moved = left_regular(g, f, group)
    padded = nn.functional.pad(f, (4, 4, 4, 4))
    expected = torch.rot90(padded, 1, (-2, -1)).roll((2, -1), (-2, -1))[..., 4:-4, 4:-4]
    assert (moved - expected).abs().max() < 1e-12
    inner = torch.zeros_like(f)
    inner[..., 3:6, 3:6] = f[..., 3:6, 3:6]  # so that nothing leaves the image
    lift = ls.Lift(3, 2, 3, grid, padding=1, bias=False, dtype=torch.float64, x_basis=ls.SplineBasis(ls.disc(1)))
    assert (lift(left_regular(g, inner, group)) - left_regular(g, lift(inner), group, grid)).abs().max() < 1e-12


def test_what_is_measured_on_invariants() -> None:
    """Outputs without an axis of H should not change at all: sums over the grid do not, one element of it does."""
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), 4)
    lift = ls.Lift(1, 3, 5, grid, dtype=torch.float64)
    invariant = nn.Sequential(lift, nn.ReLU(), ls.Project("mean", grid).double())
    on_grid = {"size": 9, "elements": grid.elements}
    assert equivariance_error(invariant, grid, **on_grid) < 1e-12
    assert equivariance_error(nn.Sequential(invariant, nn.AdaptiveAvgPool2d(1), nn.Flatten()), grid, **on_grid) < 1e-12

    class OneElement(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[:, :, 0]

    assert equivariance_error(nn.Sequential(lift, OneElement()), grid, size=9) > 0.1


def test_what_cannot_be_measured_says_why() -> None:
    grid = ls.uniform(ls.Scale(2), 2, spacing=0.3)
    lift = ls.Lift(1, 1, 5, grid)
    with pytest.raises(ValueError, match=r"nothing to compare; no product of these elements lies on Grid\(Scale"):
        equivariance_error(lift, grid, size=9, elements=torch.tensor([[5.0]]))
    with pytest.raises(ValueError, match=r"shape \(8, 1, 2, 4, 4\), 2 elements on axis 2; Grid\(Scale.* differs"):
        equivariance_error(lift, ls.uniform(ls.Scale(2), 3, spacing=0.3), size=8)


def test_maps_of_even_size_are_measured_too() -> None:
    """Their centre is no sample: four lie around it, and of 2×2 samples the mean is taken."""
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), 4)
    lift = ls.Lift(1, 3, 5, grid, dtype=torch.float64)
    plain = nn.Conv2d(1, 3, 5, dtype=torch.float64)
    for size in (6, 8, 10):
        assert equivariance_error(lift, grid, size=size, elements=grid.elements) < 1e-12
        assert equivariance_error(plain, grid, size=size, elements=grid.elements) > 0.05
