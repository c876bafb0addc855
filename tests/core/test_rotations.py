"""SO(3) and the sphere against SciPy's rotations: Log near π, Euler angles, the paper's (β, γ)."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from liespline import SO3, Sphere
from liespline.groups.polyhedra import vertices
from own_group import DTYPES, ball, name

ANGLES = [0.0, 1e-12, 1e-8, 1e-5, 1e-2, 1.0, 2.0, 3.0, math.pi - 1e-2, math.pi - 1e-3, math.pi - 1e-4]
UP_TO_PI = [*ANGLES, math.pi - 1e-6]


def rotation_vectors(angle: float, n: int = 1000) -> torch.Tensor:
    direction = ball(3, n, 1.0)
    axes = torch.cat([torch.eye(3), -torch.eye(3)]).double()  # where a formula may divide by zero
    return angle * torch.cat([axes, direction / direction.norm(dim=-1, keepdim=True)])


@pytest.mark.parametrize("angle", ANGLES)
def test_log_undoes_exp_up_to_pi(angle):
    a = rotation_vectors(angle)
    matrix = SO3().exp(a)
    np.testing.assert_allclose(matrix, Rotation.from_rotvec(a).as_matrix(), rtol=0, atol=1e-14)
    assert float((SO3().log(matrix) - a).norm(dim=-1).max()) <= 1e-10
    np.testing.assert_allclose(SO3().log(matrix), Rotation.from_matrix(matrix).as_rotvec(), rtol=0, atol=1e-10)


@pytest.mark.parametrize("angle", UP_TO_PI)
@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_gradients_of_exp_and_log_are_finite_from_zero_to_pi(angle, dtype):
    a = rotation_vectors(angle, 100).to(dtype).requires_grad_()
    matrix = SO3().exp(a)
    (of_exp,) = torch.autograd.grad(matrix.square().sum() + matrix.sum(), a, retain_graph=True)
    leaf = matrix.detach().requires_grad_()
    (of_log,) = torch.autograd.grad(SO3().log(leaf).sum(), leaf)
    (of_both,) = torch.autograd.grad(SO3().log(matrix).sum(), a)
    assert bool(of_exp.isfinite().all())
    assert bool(of_log.isfinite().all())
    if angle <= math.pi - 1e-2 or dtype == torch.float64:  # beyond, float32 cannot tell π − 1e-6 from π
        torch.testing.assert_close(of_both, torch.ones_like(a), rtol=0, atol=1e-9 if dtype == torch.float64 else 1e-3)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.tuples(*[st.floats(0, math.tau, exclude_max=True)] * 2), st.floats(0, math.pi))
def test_euler_angles_follow_the_paper(alpha_gamma, beta):
    """R_{α,β,γ} = R_{z,γ} R_{y,β} R_{z,α}: SciPy's intrinsic ZYZ reads the same factors from left to right."""
    alpha, gamma = alpha_gamma
    angles = torch.tensor([alpha, beta, gamma], dtype=torch.float64)
    matrix = SO3().from_euler(*angles)
    expected = Rotation.from_euler("ZYZ", [gamma, beta, alpha]).as_matrix()
    np.testing.assert_allclose(matrix, expected, rtol=0, atol=1e-14)
    found = SO3().to_euler(matrix)
    assert 0 <= float(found[0]) < math.tau
    assert 0 <= float(found[1]) <= math.pi
    assert 0 <= float(found[2]) < math.tau
    np.testing.assert_allclose(SO3().from_euler(*found), matrix, rtol=0, atol=1e-14)
    if 1e-3 < beta < math.pi - 1e-3:
        difference = torch.stack(found) - angles
        assert float((difference.sin().square() + (difference.cos() - 1).square()).max()) < 1e-20, "equal modulo 2π"


def test_euler_angles_at_the_poles():
    gamma = torch.linspace(0, 6, 7, dtype=torch.float64)
    for beta in (0.0, math.pi):
        matrix = SO3().from_euler(torch.full_like(gamma, 0.4), torch.full_like(gamma, beta), gamma)
        alpha, found, _ = angles = SO3().to_euler(matrix)
        assert bool((alpha == 0).all())
        torch.testing.assert_close(found, torch.full_like(gamma, beta))
        np.testing.assert_allclose(SO3().from_euler(*angles), matrix, rtol=0, atol=1e-14)


def test_sphere_angles_and_ranges():
    sphere = Sphere()
    turn = torch.arange(24, dtype=torch.float64) * math.tau / 24
    beta, gamma = torch.cartesian_prod(torch.linspace(0, math.pi, 19, dtype=torch.float64), turn).T
    n = sphere.from_angles(beta, gamma)
    rotation = Rotation.from_euler("ZY", np.stack((gamma, beta), -1))
    np.testing.assert_allclose(n, rotation.apply([0, 0, 1]), rtol=0, atol=1e-14)
    found_beta, found_gamma = sphere.to_angles(n)
    assert float(found_beta.min()) >= 0
    assert float(found_beta.max()) <= math.pi
    assert float(found_gamma.min()) >= 0
    assert float(found_gamma.max()) < math.tau
    np.testing.assert_allclose(sphere.from_angles(found_beta, found_gamma), n, rtol=0, atol=1e-14)
    np.testing.assert_allclose(sphere.rotation(n) @ torch.tensor([0, 0, 1.0]).double(), n, rtol=0, atol=1e-14)
    inside = (beta > 0.01) & (beta < math.pi - 0.01)
    expected = SO3().from_euler(torch.zeros_like(beta), beta, gamma)
    np.testing.assert_allclose(sphere.rotation(n)[inside], expected[inside], rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_sphere_is_sound_at_its_poles(dtype):
    sphere = Sphere()
    for pole in ([0.0, 0, 1], [0.0, 0, -1]):
        n = torch.tensor(pole, dtype=dtype, requires_grad=True)
        results = (
            sphere.log(n),
            sphere.rotation(n),
            sphere.inverse(n),
            sphere.exp(sphere.log(n)),
            *sphere.to_angles(n),
        )
        total = sum(r.sum() for r in results[:4])
        (gradient,) = torch.autograd.grad(total, n)
        assert all(bool(r.isfinite().all()) for r in (*results, gradient))
        torch.testing.assert_close(sphere.exp(sphere.log(n)), n, rtol=0, atol=1e-6)
        torch.testing.assert_close(sphere.log(n), n.new_tensor([0, 0 if pole[2] > 0 else math.pi]))
        beta = n.new_tensor(math.acos(pole[2]))
        torch.testing.assert_close(sphere.from_angles(beta, n.new_tensor(2.0)), n.detach(), rtol=0, atol=1e-6)
        torch.testing.assert_close(sphere.to_angles(n)[0], beta, rtol=0, atol=1e-6)
    assert torch.equal(sphere.rotation(sphere.identity(dtype=dtype)), torch.eye(3, dtype=dtype))
    near = torch.tensor([[1e-9, 0, -1.0], [3e-4, 4e-4, -1.0], [3e-4, 4e-4, 1.0]], dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(sphere.log(near).sum(), near)
    assert bool(gradient.isfinite().all())


@pytest.mark.parametrize(("group", "volume"), [(SO3(), 8 * math.pi**2), (Sphere(), 4 * math.pi)], ids=name)
def test_haar_density_integrates_to_the_volume(group, volume):
    nodes, weights = np.polynomial.legendre.leggauss(24)
    radius, weights = torch.tensor(math.pi / 2 * (nodes + 1)), torch.tensor(math.pi / 2 * weights)
    direction = torch.full((group.dim,), group.dim**-0.5, dtype=torch.float64)
    shell = {3: 4 * math.pi * radius**2, 2: 2 * math.pi * radius}[group.dim]  # the density depends on the angle only
    total = float((weights * shell * group.haar_density(radius.unsqueeze(-1) * direction)).sum())
    assert total == pytest.approx(volume, rel=1e-9)


def test_twelve_points_on_the_sphere_are_the_corners_of_an_icosahedron() -> None:
    """Cosines of the angles between them are ±1 and ±1/√5, five of each of the latter for every corner."""
    corners = vertices(12)
    cosines = (corners @ corners.T).sort(-1).values
    right = torch.tensor([-1.0] + 5 * [-(5**-0.5)] + 5 * [5**-0.5] + [1.0], dtype=torch.float64)
    assert torch.allclose(cosines, right.expand(12, 12), atol=1e-12)
