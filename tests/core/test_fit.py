"""Least-squares fits of splines: coefficients come back, and a texture on the sphere is rebuilt."""

import math

import numpy as np
import pytest
import torch

from liespline import SO2, SO3, Grid, Sphere, SplineBasis, lattice, local, repulsion, uniform
from own_group import DTYPES, Triangular, ball, name, vectors

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


def texture(n: torch.Tensor) -> torch.Tensor:
    """Return a smooth function on the sphere of two channels: ripples, and a spot as wide as a continent."""
    spot = torch.tensor([0.6, 0.64, 0.48], dtype=n.dtype)
    ripples = (4 * n[:, 0]).sin() * (3 * n[:, 1]).cos() + n[:, 2] ** 3
    return torch.stack((ripples, (-8 * (n - spot).square().sum(-1)).exp() + 0.3 * (6 * n[:, 0] * n[:, 2]).cos()), -1)


def bands(count: int) -> torch.Tensor:
    """Return points in bands of equal area: an even set of samples to fit on."""
    i = torch.arange(count, dtype=torch.float64) + 0.5
    return Sphere().from_angles((1 - 2 * i / count).acos(), math.pi * (1 + math.sqrt(5)) * i)


def relative_error(grid: Grid, samples: int) -> float:
    """Return the error of the rebuilt texture where it was not sampled, relative to the texture."""
    basis, h = SplineBasis(grid), bands(samples)
    coefficients = basis.fit(h, texture(h))
    direction = ball(3, 1000, 1.0, seed=5)
    unseen = direction / direction.norm(dim=-1, keepdim=True)
    rebuilt = torch.cat([basis(part) @ coefficients for part in unseen.split(40)])
    return float((rebuilt - texture(unseen)).norm() / texture(unseen).norm())


def test_many_splines_rebuild_a_texture():
    grid = repulsion(Sphere(), 1500)
    assert float(grid.weights.sum()) == pytest.approx(4 * math.pi, rel=1e-13)
    spread = grid.spacing / math.sqrt(4 * math.pi / 1500)
    assert 0.95 < spread < 1.0746, "neighbours nearly as far apart as on a hexagonal lattice, √(2/√3)"
    assert relative_error(grid, 6000) <= 0.01
