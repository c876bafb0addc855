"""Grids: how many elements, how far apart, what their weights integrate, and that a seed means the same bytes."""

import copy
import hashlib
import itertools
import math
import pickle

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from liespline import (
    GL2,
    O2,
    O3,
    SO2,
    SO3,
    Grid,
    Group,
    MatrixGroup,
    Product,
    Scale,
    Sphere,
    Translation,
    Trivial,
    disc,
    groups,
    lattice,
    local,
    repulsion,
    uniform,
)
from liespline.grids import polyhedral
from liespline.grids.repulsion import _quaternion_spiral
from liespline.groups import Semidirect
from own_group import SPACES, Triangular, name, vectors

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


STEP = 0.5 * math.log(2)
COUNTS: list[tuple[Group, list[int | tuple[int, ...]], object]] = [
    (Trivial(2), [1], None),
    (SO2(), [1, 2, 7, 24], None),
    (O2(), [2, 8, 14, 24], None),
    (Scale(1), [1, 4], STEP),
    (Scale(3), [5], STEP),
    (SO3(), [12, 24, 60], None),
    (O3(), [24, 48, 120], None),
    (Sphere(), [4, 6, 8, 12, 20], None),
    (Product(SO2(), Scale(2)), [(8, 3), (1, 1)], (None, STEP)),
    (Product(O2(), Scale(2)), [(8, 3), (2, 1)], (None, STEP)),
    (Product(SO3(), Scale(3)), [(24, 2)], (None, STEP)),
    (Product(O3(), Scale(3)), [(48, 2)], (None, STEP)),
]
WITHOUT = [GL2(), MatrixGroup([[[0, 1], [0, 0]]]), Translation(2), Semidirect(SO2())]
"""Groups of which no finite set is uniform, or none that depends on a number alone."""


@pytest.mark.parametrize(("group", "counts", "spacing"), COUNTS, ids=lambda value: name(value) or "")
def test_uniform_makes_as_many_elements_as_asked_for(group, counts, spacing):
    for n in counts:
        grid = uniform(group, n, spacing=spacing)
        assert len(grid) == math.prod(n if isinstance(n, tuple) else (n,))
        assert grid.group.offset(grid.elements.unsqueeze(1), grid.elements).norm(dim=-1).fill_diagonal_(1).min() > 0.1
        assert grid.group.component(grid.elements).bincount().unique().numel() == 1, "as many on every component"


def test_no_group_is_left_out_of_that():
    kinds = {kind for name in groups.__all__ if isinstance(kind := getattr(groups, name), type)}
    assert {type(group) for group in [*(group for group, *_ in COUNTS), *WITHOUT]} | {Group} == {
        kind for kind in kinds if issubclass(kind, Group)
    }
    for group in WITHOUT:
        with pytest.raises(ValueError, match=r"there is (local|lattice)\("):
            uniform(group, 4)


@pytest.mark.parametrize("n", [1, 3, 7])
def test_half_of_o2_are_reflections(n):
    right = rf"n = {n} for O2\(\), must be even, such as {n + 1}: half of the elements are reflections"
    with pytest.raises(ValueError, match=right):
        uniform(O2(), n)
    with pytest.raises(ValueError, match=right):
        uniform(Product(O2(), Scale(2)), (n, 2), spacing=(None, STEP))


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12, 31])
def test_uniform_circle(n):
    grid = uniform(SO2(), n)
    angles = np.arange(n) * math.tau / n
    np.testing.assert_allclose(np.exp(1j * grid.elements[:, 0].numpy()), np.exp(1j * angles), atol=1e-14)
    assert grid.spacing == pytest.approx(math.tau / n)
    assert float(grid.weights.sum()) == pytest.approx(math.tau)
    waves = torch.arange(1, n) * grid.elements  # (n, n − 1): every frequency that n samples can tell from 0
    assert float((grid.weights @ waves.cos()).abs().max() if n > 1 else 0) < 1e-12


def test_uniform_scales_are_the_papers():
    grid = uniform(Scale(2), 5, spacing=0.5 * math.log(2))
    np.testing.assert_allclose(grid.elements[:, 0], math.sqrt(2) ** np.arange(5))
    np.testing.assert_allclose(grid.weights, 0.5 * math.log(2))


def test_trivial_grid_is_one_element_of_weight_one():
    grid = uniform(Trivial(3), 1)
    assert (len(grid), grid.elements.shape, grid.weights.tolist()) == (1, (1, 0), [1.0])


@pytest.mark.parametrize(("order", "letter"), [(12, "T"), (24, "O"), (60, "I")])
def test_polyhedral_groups_are_exact_subgroups(order, letter):
    members = polyhedral(order)
    assert torch.equal(members[0], torch.eye(3, dtype=torch.float64))
    products = (members.unsqueeze(1) @ members).reshape(-1, 1, 9)
    nearest = (products - members.reshape(1, -1, 9)).abs().amax(-1).min(1)
    assert float(nearest.values.max()) < 1e-14, "closed under the product"
    assert torch.equal(nearest.indices.bincount(), torch.full((order,), order)), "a Latin square"
    ours = Rotation.from_matrix(members.numpy()).magnitude()
    scipys = Rotation.create_group(letter).magnitude()
    np.testing.assert_allclose(np.sort(ours), np.sort(scipys), atol=1e-7)
    if order < 60:
        assert set(members.unique().tolist()) == {-1.0, 0.0, 1.0}, "lattices map to themselves exactly"


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


def test_local_counts_shells_about_the_identity():
    assert local(SO2(), 3, 0.5).elements[:, 0].tolist() == [-0.5, 0, 0.5]
    assert local(SO2(), 4, 0.5).elements[:, 0].tolist() == [-0.75, -0.25, 0.25, 0.75]
    np.testing.assert_allclose(local(Scale(2), 3, math.log(2)).elements[:, 0], [0.5, 1, 2])
    for n, furthest in ((1, 0), (7, 1), (19, math.sqrt(2)), (27, math.sqrt(3))):
        grid = local(SO3(), n, 0.2)
        assert len(grid) == n
        assert float(SO3().log(grid.elements).norm(dim=-1).max()) == pytest.approx(0.2 * furthest)
    assert len(local(SO3(), (3, 1, 5), 0.2)) == 15
    assert len(local(Trivial(2), 1, 1.0)) == 1


@pytest.mark.parametrize("group", SPACES, ids=name)
def test_local_weights_carry_the_haar_density(group):
    n = {0: 1, 1: 5, 2: 9, 3: 27}[group.dim]
    grid = local(group, n, 0.3)
    a = group.log(grid.elements)
    torch.testing.assert_close(grid.weights, 0.3**group.dim * group.haar_density(a))
    np.testing.assert_allclose(a.mean(0), np.zeros(group.dim), atol=1e-12)


def test_fine_local_grid_integrates_over_the_group():
    """Lattice sums over the ball of radius π approach the volume of SO(3), and harmonics of degree 1 approach 0."""
    cells = 25
    grid = local(SO3(), (cells,) * 3, 2 * math.pi / cells)
    angle = SO3().log(grid.elements).norm(dim=-1)
    box = local(Translation(3), (cells,) * 3, 2 * math.pi / cells).elements.norm(dim=-1)
    weights = torch.where(box < math.pi, grid.weights, 0)
    assert float(weights.sum()) == pytest.approx(8 * math.pi**2, rel=0.02)
    assert float((weights * (1 + 2 * angle.cos())).sum()) == pytest.approx(0, abs=0.02 * 8 * math.pi**2)


def test_lattice_and_disc():
    assert lattice(1, 4, spacing=2.0).elements[:, 0].tolist() == [-3, -1, 1, 3]
    square = lattice(2, (3, 5), spacing=0.5)
    expected = [[x, y] for x in (-0.5, 0, 0.5) for y in (-1, -0.5, 0, 0.5, 1)]
    assert square.elements.tolist() == expected
    assert square.weights.unique().tolist() == [0.25]
    assert {n: len(disc(n)) for n in (1, 3, 5, 7)} == {1: 1, 3: 9, 5: 21, 7: 37}
    five = disc(5, spacing=2.0)
    assert float(five.elements.norm(dim=-1).max()) == pytest.approx(2 * math.sqrt(5))
    assert [len(disc(n, 3)) for n in (3, 5)] == [19, 57]
    assert (five.group, five.spacing) == (Translation(2), 2.0)


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
    assert np.degrees(min((a.inv() * b).magnitude() for a, b in itertools.combinations(spiral, 2))) < 45, (
        "where it starts"
    )


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


def contents(grid: Grid) -> bytes:
    return grid.elements.numpy().tobytes() + grid.weights.numpy().tobytes() + repr(grid.spacing).encode()


@pytest.mark.parametrize("group", [Sphere(), SO3()], ids=name)
def test_same_seed_same_bytes_whatever_the_threads(group):
    once = repulsion(group, 130, seed=3)
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    try:
        torch.set_num_threads(3)
        torch.manual_seed(99)
        np.random.seed(99)
        again = repulsion(group, 130, seed=3)
    finally:
        torch.set_num_threads(threads)
        torch.random.set_rng_state(state)
    assert contents(again) == contents(once)
    assert contents(repulsion(group, 130, seed=4)) != contents(once)


@pytest.mark.parametrize(
    ("group", "n", "digest"), [(Sphere(), 50, "7f41ad668e83647a"), (SO3(), 48, "e80b4c679bbb55ce")], ids=name
)
def test_same_grid_on_any_machine(group, n, digest):
    """The digests came out alike on two machines with other processors, Python, NumPy and torch versions."""
    assert hashlib.sha256(contents(repulsion(group, n))).hexdigest()[:16] == digest


@pytest.mark.parametrize("group", SPACES, ids=name)
def test_grids_are_values(group: Group):
    grid = local(group, {0: 1, 1: 3, 2: 5, 3: 7}[group.dim], 0.3)
    for twin in (copy.deepcopy(grid), pickle.loads(pickle.dumps(grid)), Grid(group, grid.elements, grid.weights, 0.3)):
        assert twin == grid
        assert hash(twin) == hash(grid)
    assert Grid(group, grid.elements, 2 * grid.weights, 0.3) != grid
    assert Grid(group, grid.elements, grid.weights, 0.4) != grid
    assert grid != "grid"


def test_grids_keep_their_own_copy_in_float64():
    elements = torch.tensor([[0.5], [1.0]])
    grid = Grid(Scale(2), elements, torch.ones(2), 1.0)
    elements.fill_(7)
    assert grid.elements.tolist() == [[0.5], [1.0]]
    assert (grid.elements.dtype, grid.weights.dtype) == (torch.float64, torch.float64)
    with pytest.raises(AttributeError):
        grid.spacing = 2.0
    with pytest.raises(ValueError, match="Grid: elements"):
        Grid(Triangular(), torch.ones(1, 2, 2), torch.ones(1), 1.0)  # not triangular: Exp ∘ Log tells
