"""Grids of polyhedra and by repulsion: their distances, what their weights integrate, the same bytes for a seed."""

import hashlib
import itertools
import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from liespline import SO2, SO3, Grid, Sphere, repulsion, uniform
from liespline.grids import polyhedral
from liespline.grids.repulsion import _quaternion_spiral
from own_group import name, vectors

VOLUME = {SO3: 8 * math.pi**2, Sphere: 4 * math.pi, SO2: math.tau}
PLATONIC = {(SO3, 12): 2, (SO3, 24): 3, (SO3, 60): 5, (Sphere, 4): 2, (Sphere, 6): 3, (Sphere, 8): 3, (Sphere, 12): 5}
"""The degree up to which the weights are exact: tetrahedral 2, octahedral 3, icosahedral 5."""


def distances(grid: Grid) -> torch.Tensor:
    """Return ‖Log h_i⁻¹h_j‖ between different members."""
    found = grid.group.offset(grid.elements.unsqueeze(1), grid.elements).norm(dim=-1)
    return found[~torch.eye(len(grid), dtype=torch.bool)].reshape(len(grid), -1)


def moments(grid: Grid, degree: int) -> float:
    """Return how far the mean of harmonics of degree 1 … `degree` is from 0, the worst of many.

    On S² they are Legendre polynomials about random axes, on SO(3) the characters about random elements, with 1 as
    their largest value; moved about like this they span all harmonics of a degree.
    """
    group = grid.group
    weights = grid.weights / VOLUME[type(group)]
    others = group.exp(vectors(group, 64, seed=11))
    if isinstance(group, Sphere):
        cosine = others @ grid.elements.T
        values = [torch.special.legendre_polynomial_p(cosine, n) for n in range(1, degree + 1)]
    else:
        angle = group.offset(others.unsqueeze(1), grid.elements).norm(dim=-1)
        values = [(1 + 2 * sum((m * angle).cos() for m in range(1, n + 1))) / (2 * n + 1) for n in range(1, degree + 1)]
    return max(float((value @ weights).abs().max()) for value in values)


def test_polyhedral_groups_equal_scipys_up_to_orientation():
    """SciPy's group conjugated by some rotation is ours, member by member."""
    for order, letter in ((12, "T"), (24, "O"), (60, "I")):
        ours, theirs = polyhedral(order).numpy(), Rotation.create_group(letter).as_matrix()
        quarter = Rotation.from_rotvec([[0, 0, 0], [0, 0, math.pi / 2]]).as_matrix()  # both lie along the axes
        gaps = [max(np.abs(turn @ member @ turn.T - ours).max((1, 2)).min() for member in theirs) for turn in quarter]
        assert min(gaps) < 1e-12


@pytest.mark.parametrize(("kind", "n"), [*PLATONIC, (Sphere, 20)])
def test_platonic_grids(kind, n):
    grid = uniform(kind(), n)
    degree = PLATONIC.get((kind, n), 5)
    assert len(grid) == n
    assert float(grid.weights.sum()) == pytest.approx(VOLUME[kind], rel=1e-14)
    nearest = distances(grid).min(1).values
    np.testing.assert_allclose(nearest, grid.spacing, rtol=1e-12)
    assert moments(grid, degree) < 1e-12
    assert moments(grid, degree + 1) > 1e-3, "and no further, so the check can fail"


def smallest(grid: Grid) -> float:
    return math.degrees(float(distances(grid).min()))


def test_forty_eight_rotations_lie_sixty_degrees_apart():
    grid = repulsion(SO3(), 48)
    elements = Rotation.from_matrix(grid.elements.numpy())
    angles = np.array([(one.inv() * elements).magnitude() for one in elements])
    assert np.degrees(np.sort(angles, 1)[:, 1].min()) >= 60
    assert smallest(grid) == pytest.approx(np.degrees(np.sort(angles, 1)[:, 1].min()), abs=1e-6)
    assert min(smallest(repulsion(SO3(), 48, seed=seed)) for seed in (1, 2)) >= 60, "not by the luck of one seed"
    spiral = Rotation.from_quat(_quaternion_spiral(48).T)
    assert np.degrees(min((a.inv() * b).magnitude() for a, b in itertools.combinations(spiral, 2))) < 45, "at first"


@pytest.mark.parametrize(("group", "n", "degrees"), [(Sphere(), 4, 109.4), (Sphere(), 12, 63.3), (SO3(), 12, 119.9)])
def test_few_points_find_the_best_arrangement(group, n, degrees):
    """Tetrahedron, icosahedron and the tetrahedral group are the known optima."""
    assert smallest(repulsion(group, n)) > degrees


@pytest.mark.parametrize("n", [1, 2, 3, 5, 9, 20, 35, 48, 200])
@pytest.mark.parametrize("group", [Sphere(), SO3()], ids=name)
def test_repulsion_weights_integrate(group, n):
    grid = repulsion(group, n)
    assert float(grid.weights.sum()) == pytest.approx(VOLUME[type(group)], rel=1e-14)
    assert float(grid.weights.min()) > 0
    if n >= 48 or (n >= 9 and isinstance(group, Sphere)):  # enough points for the 9 or 34 conditions
        assert moments(grid, 2) < 1e-13
    if n == 200:
        assert moments(grid, 6) < 0.01, "higher degrees are not asked for, and still small"
    nearest = distances(grid).min(1).values.mean() if n > 1 else 1.0
    assert grid.spacing == pytest.approx(float(nearest), abs=1e-8)


@pytest.mark.parametrize(
    ("group", "n", "digest"), [(Sphere(), 50, "7f41ad668e83647a"), (SO3(), 48, "e80b4c679bbb55ce")], ids=name
)
@pytest.mark.parametrize("threads", [1, 3])
def test_same_grid_on_any_machine(group, n, digest, threads):
    """The digests came out alike on two machines with other processors, Python, NumPy and torch versions."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.manual_seed(threads)
    np.random.seed(threads)
    try:
        grid = repulsion(group, n)
    finally:
        torch.set_num_threads(before)
    contents = grid.elements.numpy().tobytes() + grid.weights.numpy().tobytes() + repr(grid.spacing).encode()
    assert hashlib.sha256(contents).hexdigest()[:16] == digest


def test_many_elements_are_as_far_from_their_neighbours_everywhere():
    """More than 256 push each other from afar; were that farther still, distances would vary by 3.2 per cent."""
    elements = repulsion(Sphere(), 400).elements
    apart = Sphere().offset(elements.unsqueeze(1), elements).norm(dim=-1).fill_diagonal_(math.inf)
    nearest = apart.min(1).values
    assert nearest.std() / nearest.mean() < 0.027
