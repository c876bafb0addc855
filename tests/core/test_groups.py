"""Every group: Exp, Haar density, shapes, devices, gradients, compile; axioms are in test_check_group.py."""

import copy
import math
import pickle

import numpy as np
import pytest
import scipy.linalg
import torch

from liespline import GL2, O2, O3, SO2, Scale
from liespline.groups import Semidirect
from own_group import BUILT, DTYPES, GROUPS, SIM2, SL2, SPACES, apart, name, points, vectors

each_group = pytest.mark.parametrize("group", GROUPS, ids=name)
every_space = pytest.mark.parametrize("group", [*SPACES, *BUILT], ids=name)


@each_group
def test_exp_and_log_against_the_matrix_exponential(group):
    generators = {
        "SO2": [[[0, -1], [1, 0]]],
        "Scale": [np.eye(group.space_dim)],
        "SO3": [
            [[0, 0, 0], [0, 0, -1], [0, 1, 0]],
            [[0, 0, 1], [0, 0, 0], [-1, 0, 0]],
            [[0, -1, 0], [1, 0, 0], [0, 0, 0]],
        ],
        "Triangular": [[[1, 0], [0, 0]], [[0, 0], [0, 1]], [[0, 1], [0, 0]]],
    }.get(type(group).__name__, np.zeros((group.dim, group.space_dim, group.space_dim)))  # translations turn nothing
    a = vectors(group, 300)
    expected = scipy.linalg.expm(np.einsum("pi,ijk->pjk", a.numpy(), np.asarray(generators, float)))
    np.testing.assert_allclose(group.matrix(group.exp(a)), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(group.log(group.exp(a)), a, rtol=1e-12, atol=1e-12)


def test_angles_wrap_to_minus_pi_pi():
    turns = torch.arange(-7, 8, dtype=torch.float64).unsqueeze(-1) * math.pi / 2
    for dtype in DTYPES:
        log = SO2().log(turns.to(dtype))
        assert bool(((log >= -math.pi - 1e-6) & (log < math.pi)).all())
    assert float(SO2().log(torch.tensor([math.pi], dtype=torch.float64))) == -math.pi


@pytest.mark.parametrize("group", [*GROUPS[1:], *BUILT], ids=name)
def test_haar_density_is_left_invariant(group):
    """μ(b) |∂b/∂a| = μ(a) for b = Log(g Exp a), and μ(0) = 1: no other density does that."""
    assert float(group.haar_density(torch.zeros(group.dim, dtype=torch.float64))) == pytest.approx(1)
    g = group.exp(vectors(group, 1, seed=3)[0] / 3)

    def shifted(a: torch.Tensor) -> torch.Tensor:
        return group.log(group.product(g, group.exp(a)))

    for a in vectors(group, 5, seed=4) / 3:
        jacobian = torch.autograd.functional.jacobian(shifted, a)
        there, here = group.haar_density(shifted(a)), group.haar_density(a)
        torch.testing.assert_close(there * torch.linalg.det(jacobian).abs(), here, rtol=1e-10, atol=0)


@every_space
def test_leading_dimensions_broadcast(group):
    g, h = group.exp(vectors(group, 4)), group.exp(vectors(group, 3, seed=5))
    x = points(group, 3)
    wide, thin = g.unsqueeze(1), h.unsqueeze(0)  # (4, 1, …) with (1, 3, …)
    pairs = [(one, other) for one in g for other in h]
    for method in (group.product, group.relative, group.offset):
        looped = torch.stack([method(one, other) for one, other in pairs]).unflatten(0, (4, 3))
        assert torch.equal(method(wide, thin), looped) or apart(method(wide, thin), looped) <= 1e-15
    for method in (group.act, group.pull):
        looped = torch.stack([torch.stack([method(one, point) for point in x]) for one in g])
        assert apart(method(wide, x), looped) <= 1e-15
    assert group.det(wide.expand(4, 3, *group.element_shape)).shape == (4, 3)
    assert group.haar_density(torch.zeros(2, 5, group.dim)).shape == (2, 5)
    nothing = group.exp(torch.zeros(0, group.dim))
    assert group.act(nothing, torch.zeros(group.space_dim)).shape == (0, group.space_dim)


@every_space
def test_results_follow_the_device(group):
    """Tensors on the meta device refuse to meet any other, so a constant made on the CPU would raise here."""
    a, x = vectors(group, 5).to("meta"), points(group, 5).to("meta")
    h = group.exp(a)
    results = [h, group.inverse(h), group.product(h, h), group.log(h), group.act(h, x), group.pull(h, x)]
    results += [group.offset(h, h), group.matrix(h), group.det(h), group.identity(device="meta")]
    assert {r.device.type for r in results} == {"meta"}


def test_groups_are_values():
    for group in [*SPACES, *BUILT]:
        for twin in (copy.deepcopy(group), pickle.loads(pickle.dumps(group))):
            assert twin == group
            assert hash(twin) == hash(group)
    assert len({*SPACES, *BUILT}) == len(SPACES) + len(BUILT)
    assert Scale(2) != Scale(3)
    assert Scale(2) != SO2()
    assert repr(Scale(3)) == "Scale(space_dim=3)"


@pytest.mark.parametrize("group", [*SPACES, O2(), O3(), SIM2, GL2(), SL2, Semidirect(SIM2)], ids=name)
def test_compile_traces_every_method(group):
    def methods(g: torch.Tensor, h: torch.Tensor, a: torch.Tensor, x: torch.Tensor) -> list[torch.Tensor]:
        results = [group.product(g, h), group.inverse(h), group.exp(a), group.log(h), group.act(h, x)]
        return [*results, group.relative(g, h), group.offset(g, h), group.pull(h, x), group.matrix(h), group.det(h)]

    torch.compiler.reset()
    a, b, x = vectors(group, 5), vectors(group, 5, seed=6), points(group, 5)
    arguments = (group.exp(a), group.exp(b), a, x)
    compiled = torch.compile(methods, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*arguments), methods(*arguments))
