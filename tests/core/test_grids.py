"""Grids: how many elements, where they lie and what they weigh; test_repulsion.py has those of curved spaces."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch

from liespline import (
    GL2,
    O2,
    O3,
    SO2,
    SO3,
    Axial,
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
    uniform,
)
from liespline.groups import Semidirect
from own_group import SPACES, Triangular, name

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
    (Axial(SO2()), [1, 7], None),
    (Axial(O2(), axis=0), [2, 8], None),
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


@pytest.mark.parametrize("n", [1, 2, 3, 8, 12, 31])
def test_uniform_circle(n):
    grid = uniform(SO2(), n)
    angles = np.arange(n) * math.tau / n
    np.testing.assert_allclose(np.exp(1j * grid.elements[:, 0].numpy()), np.exp(1j * angles), atol=1e-14)
    assert grid.spacing == pytest.approx(math.tau / n)
    assert float(grid.weights.sum()) == pytest.approx(math.tau)
    waves = torch.arange(1, n) * grid.elements  # (n, n − 1): every frequency that n samples can tell from 0
    assert float((grid.weights @ waves.cos()).abs().max() if n > 1 else 0) < 1e-12


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


FINITE = [(O2(), 16), *((SO3(), n) for n in (12, 24, 60)), *((O3(), n) for n in (24, 48, 120))]


@pytest.mark.parametrize(("group", "n"), FINITE, ids=name)
def test_uniform_grids_are_groups(group, n):
    elements = group.matrix(uniform(group, n).elements)
    products = (elements.unsqueeze(1) @ elements).reshape(-1, 1, *elements.shape[1:])
    nearest = (products - elements).abs().amax((-1, -2)).min(1)
    assert float(nearest.values.max()) < 1e-14
    assert torch.equal(nearest.indices.bincount(), torch.full((len(elements),), len(elements))), "a Latin square"
    if n in (12, 24, 48):
        assert set(elements.unique().tolist()) == {-1.0, 0.0, 1.0}, "signed permutations map lattices to themselves"


def test_scalings_are_of_images_unless_said():
    assert Scale().space_dim == 2
