"""Groups from their generators: Log against SciPy's, its gradients, and what it says where there is none."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from liespline import SO2, SO3, MatrixGroup, Product, Scale, SplineBasis, local
from liespline.groups import Semidirect
from liespline.groups.linear import logarithm
from own_group import CROSS, HEISENBERG, SHEARS, SIM2, SL2, STRETCHES, UPPER, J, ball


def affine(generators: list) -> MatrixGroup:
    """R^d ⋊ H as matrices [[h, x], [0, 1]], translations first."""
    d = len(generators[0])
    moves = torch.zeros(d + len(generators), d + 1, d + 1, dtype=torch.float64)
    moves[range(d), range(d), d] = 1
    moves[d:, :d, :d] = torch.tensor(generators, dtype=torch.float64)
    return MatrixGroup(moves)


# A group of matrices, how far from e it is tried, and the same group in closed form where we have one.
LOGS = {
    "SO(2)": (MatrixGroup([J]), 3.1, SO2()),
    "SO(3)": (MatrixGroup(CROSS), 3.1, SO3()),
    "SE(2)": (affine([J]), 3.0, Semidirect(SO2())),
    "SE(3)": (affine(CROSS), 3.0, Semidirect(SO3())),
    "SIM(2)": (affine([J, np.eye(2).tolist()]), 3.0, Semidirect(SIM2)),
    "turns and zooms": (MatrixGroup([J, np.eye(2).tolist()]), 3.0, SIM2),
    "SL(2)": (SL2, 1.5, None),
    "shears": (SHEARS, 3.0, None),
    "stretches": (STRETCHES, 3.0, Product(*[Scale(1)] * 2)),
    "Heisenberg": (HEISENBERG, 3.0, None),
    "upper triangular": (UPPER, 2.0, None),
}
each = pytest.mark.parametrize("which", LOGS)


@each
def test_log_undoes_exp_and_is_scipys(which):
    group, radius, twin = LOGS[which]
    a = ball(group.dim, 2000, radius)
    h = group.exp(a)
    np.testing.assert_allclose(group.log(h), a, rtol=0, atol=1e-10)
    generators = group.generators.numpy()
    for one, vector in zip(h[:200].numpy(), group.log(h[:200]).numpy(), strict=True):
        expected = scipy.linalg.logm(one)
        np.testing.assert_allclose(np.einsum("i,ijk->jk", vector, generators), np.real(expected), rtol=0, atol=1e-10)
    if twin is not None and twin.space_dim > 1:
        np.testing.assert_allclose(twin.log(twin.exp(a)), a, rtol=0, atol=1e-10)
        d = twin.space_dim
        np.testing.assert_allclose(twin.matrix(twin.exp(a)), h[:, :d, :d], rtol=0, atol=1e-10)
        origin = torch.zeros(d, dtype=a.dtype)
        moved = h[:, :d, d] if isinstance(twin, Semidirect) else torch.zeros(len(h), d, dtype=a.dtype)
        np.testing.assert_allclose(twin.act(twin.exp(a), origin), moved, rtol=0, atol=1e-10)


EQUAL = {
    "identity": np.eye(2),
    "a zoom": 3 * np.eye(2),
    "a shear": [[1, 2], [0, 1]],
    "almost equal": [[1, 2], [1e-9, 1]],
    "at the edge of the series": scipy.linalg.expm([[0.3, 0.1 - 1e-9], [0.1, 0.3]]),
    "a turn": scipy.linalg.expm(2.9 * np.array(J)),
    "identity of space": np.eye(3),
    "two equal": np.diag([2.0, 2.0, 0.5]),
    "a Jordan block": [[2.0, 1, 0], [0, 2, 1], [0, 0, 2]],
    "at the edge of a root": np.eye(3) + 0.4 / math.sqrt(3) * np.eye(3),
    "a turn of space": scipy.linalg.expm(2.9 * np.array(CROSS[0])),
    "four": np.diag([1.0, 1, 2, 2]) + np.eye(4, k=1),
}


@pytest.mark.parametrize("where", EQUAL)
def test_gradients_are_those_of_finite_differences(where):
    """At equal eigenvalues, too, where derivatives by eigenvectors would be infinite."""
    matrix = torch.tensor(np.asarray(EQUAL[where]), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(logarithm, matrix, atol=1e-7)
    assert torch.autograd.gradgradcheck(logarithm, matrix, atol=1e-5)


@pytest.mark.parametrize("short", [1e-2, 1e-4, 1e-6])
def test_turns_by_almost_pi(short):
    """Rounding of h alone moves its logarithm by ε/short, and no more is lost."""
    for generators in ([J], CROSS):
        group = MatrixGroup(generators)
        a = torch.zeros(group.dim, dtype=torch.float64)
        a[-1] = math.pi - short
        assert float((group.log(group.exp(a)) - a).abs().max()) < 1e-14 / short + 1e-12


def test_where_one_may_not_look_what_has_no_logarithm_is_not_a_number():
    shear = torch.tensor([[-1.0, 1], [0, -1]], dtype=torch.float64)
    assert bool(torch.compile(logarithm, backend="eager", fullgraph=True)(shear).isnan().all())


def test_half_a_turn_of_the_plane_has_the_usual_logarithm():
    group = MatrixGroup([J])
    assert float(group.log(-torch.eye(2, dtype=torch.float64)).abs()) == pytest.approx(math.pi)
    assert group.period == (pytest.approx(math.tau),)
    circle = local(group, (8,), math.tau / 8)
    values = SplineBasis(circle)(group.exp(7 * torch.rand(50, 1, dtype=torch.float64)))
    np.testing.assert_allclose(values.sum(-1), 1, rtol=0, atol=1e-12)


def test_generators_of_any_size_close():
    """Brackets of long generators round in proportion to their length: 1e-16 of 1e10 is no leaving of the span."""
    rotated = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    generators = 1e5 * rotated @ torch.tensor(CROSS, dtype=torch.float64) @ rotated.T
    group = MatrixGroup(generators)
    a = 1e-5 * torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
    assert torch.allclose(group.log(group.exp(a)), a, rtol=1e-9, atol=0)
