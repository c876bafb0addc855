"""Least-squares fits of splines: coefficients come back, and noise is fitted as NumPy fits it."""

import numpy as np
import pytest
import torch

from liespline import SO2, SO3, Sphere, SplineBasis, lattice, local, repulsion, uniform
from own_group import DTYPES, Triangular, name, vectors

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
