"""Products, components and charts: splines, grids, weights and learned centres on them."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

import oracle_groups
from liespline import (
    GL2,
    O2,
    O3,
    SO2,
    SO3,
    GConv,
    Grid,
    Group,
    Lift,
    Product,
    Scale,
    Sphere,
    SplineBasis,
    lattice,
    local,
    repulsion,
    uniform,
)
from liespline.grids.repulsion import closest
from own_group import SIM2, ball, name, planted

STEP = 0.5 * math.log(2)
TORUS3 = Product(SO2(), SO2(), SO2())
MIRRORED = Product(O2(), Scale(2))


@pytest.mark.parametrize("degree", range(5))
def test_partition_of_unity_on_products(degree):
    """Tori of any dimension and both components of O(2), everywhere; with scales, away from the ends of these."""
    for group, n in ((Product(SO2(), SO2()), (5, 1)), (TORUS3, (2, 4, 3)), (O2(), 10)):
        h = group.exp(4 * torch.randn(200, group.dim, dtype=torch.float64))
        for part in group.representatives(dtype=torch.float64):
            values = SplineBasis(uniform(group, n), degree=degree)(group.product(h, part))
            np.testing.assert_allclose(values.sum(-1), 1, rtol=0, atol=1e-12)
    grid = uniform(SIM2, (8, 8), spacing=(None, STEP))
    assert grid.spacing == (math.tau / 8, STEP)
    margin = max((degree - 1) / 2, 0)
    a = torch.rand(200, 2, dtype=torch.float64)
    a = torch.stack((10 * a[:, 0], STEP * (margin + (7 - 2 * margin) * a[:, 1])), -1)
    np.testing.assert_allclose(SplineBasis(grid, degree=degree)(SIM2.exp(a)).sum(-1), 1, rtol=0, atol=1e-12)
    line = planted(SO2(), period=None, volume=None)
    open_ended = uniform(Product(line, line), (2, 2))
    assert float((SplineBasis(open_ended, degree=4)(a.new_zeros(1, 2) + 3).sum() - 1).abs()) > 0.05, "as on a plane"


class Still(O2):
    """Rotations and reflections that leave every point where it is, so that they commute with all others."""

    def act(self, h, x):
        return x

    def matrix(self, h):
        return torch.eye(2, dtype=h.dtype).expand(*h.shape[:-1], 2, 2)


def test_components_of_products_are_told_apart():
    group = Product(O2(), Still())
    a = group.exp(ball(group.dim, 20, 1.0)).unsqueeze(1)
    found = group.component(group.product(a, group.representatives(dtype=torch.float64)))
    assert found.tolist() == [[0, 1, 2, 3]] * 20


@pytest.mark.parametrize("group", [O2(), O3(), MIRRORED], ids=name)
def test_splines_never_reach_another_component(group: Group):
    here = group.exp(0.01 * ball(group.dim, 20, 1.0))
    mirror = group.representatives(dtype=torch.float64)[1]
    there = group.product(here, mirror)
    for centres, same, other in ((here, here, there), (there, there, here)):
        basis = SplineBasis(Grid(group, centres, torch.ones(20), 1.0), degree=2)
        assert float(basis(same).min()) > 0.4
        assert not basis(other).any(), "not even a hair away in the algebra"
    assert bool(group.offset(here, there).isinf().all())
    blind = planted(group, component=lambda self, h: torch.zeros(self.batch_shape(h), dtype=torch.long))
    assert SplineBasis(Grid(group, here, torch.ones(20), 1.0))(here).shape == (20, 20)
    assert bool(blind.offset(here, there).isfinite().all()), "the planted fault: one component taken for both"


@pytest.mark.parametrize("group", [O2(), O3(), MIRRORED], ids=name)
def test_learned_centres_stay_on_their_component(group: Group):
    here = group.exp(0.3 * ball(group.dim, 3, 1.0))
    centres = torch.cat((here, group.product(here, group.representatives(dtype=torch.float64)[1])))
    basis = SplineBasis(Grid(group, centres, torch.ones(6), 1.0), trainable=True)
    log = group.log(centres)
    torch.testing.assert_close(basis.centres(log), centres)
    moved = log + 0.05
    assert torch.equal(group.component(basis.centres(moved)), group.component(centres))
    inputs = group.product(centres, group.exp(0.1 * ball(group.dim, 6, 1.0, seed=4)))
    assert torch.autograd.gradcheck(lambda a: basis(inputs, basis.centres(a)), moved.requires_grad_())


def test_haar_weights_count_every_component():
    for grid, volume in ((uniform(O2(), 14), 2 * math.tau), (uniform(O3(), 48), 16 * math.pi**2)):
        assert float(grid.weights.sum()) == pytest.approx(volume)
        halves = [float(grid.weights[grid.group.component(grid.elements) == c].sum()) for c in (0, 1)]
        assert halves[0] == pytest.approx(halves[1])
    grid = uniform(MIRRORED, (8, 3), spacing=(None, STEP))
    assert (len(grid), float(grid.weights.sum())) == (24, pytest.approx(2 * math.tau * 3 * STEP))


def test_o2_flips_as_images_do():
    image = torch.arange(9.0).reshape(3, 3)
    y = torch.cartesian_prod(torch.arange(3.0) - 1, torch.arange(3.0) - 1)
    moves = [(0, -1, image.fliplr()), (2, -1, image.flipud()), (1, -1, image.fliplr().rot90()), (1, 1, image.rot90())]
    for turns, sign, expected in moves:
        source = O2().pull(torch.tensor([turns * math.pi / 2, sign]), y).round().long() + 1
        assert torch.equal(image[source[:, 0], source[:, 1]].reshape(3, 3), expected)


def test_products_list_every_combination():
    grid = uniform(SIM2, (4, 3), spacing=(None, STEP))
    turns, zooms = uniform(SO2(), 4), uniform(Scale(2), 3, spacing=STEP)
    expected = torch.stack([torch.cat((t, s)) for t in turns.elements for s in zooms.elements])
    wrapped = SIM2.product(SIM2.identity(dtype=torch.float64), expected)
    assert torch.equal(grid.elements, wrapped)
    assert grid.weights.tolist() == pytest.approx([math.tau / 4 * STEP] * 12)
    assert Product(Product(SO2(), Scale(2)), SO2()) == Product(SO2(), Scale(2), SO2())
    assert repr(SIM2) == "Product(SO2(), Scale(space_dim=2))"
    assert repr(grid) == "Grid(Product(SO2(), Scale(space_dim=2)), 12 elements, spacing=(1.571, 0.3466))"
    assert local(SIM2, (3, 3), (0.2, 0.4)).steps == (0.2, 0.4)


def test_a_group_of_ones_own_joins_uniform():
    class Halves(Scale):
        """Zooms by powers of two."""

        def uniform_elements(self, n, spacing):
            return 2.0 ** torch.arange(n).unsqueeze(-1).double(), 1.0 + torch.arange(n), math.log(2)

    grid = uniform(Halves(2), 3)
    assert grid.elements.tolist() == [[1], [2], [4]]
    both = uniform(Product(SO2(), Halves(2)), (4, 3))
    assert (len(both), both.spacing) == (12, (math.tau / 4, math.log(2)))
    zooms = both.elements[:, 1]  # 1, 2 and 4, which count 1, 2 and 3
    assert both.weights.tolist() == pytest.approx((math.tau / 4 * (1 + zooms.log2())).tolist())


def test_gl2_takes_every_matrix_apart():
    a = torch.randn(10_000, 2, 2, dtype=torch.float64)
    h = torch.where(torch.linalg.det(a).view(-1, 1, 1) > 0, a, a.flip(-1))
    h = h[torch.linalg.det(h) > 1e-2]
    log = GL2().log(h)
    torch.testing.assert_close(GL2().exp(log), h, rtol=0, atol=1e-12)
    right = np.stack([oracle_groups.log(GL2(), one) for one in h[:200].numpy()])
    np.testing.assert_allclose(log[:200, :3], right[:, :3], rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.exp(1j * (log[:200, 3].numpy() - right[:, 3])), 1, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("group", "n", "apart"),
    [(SO3(), 60, 1.2566), (O3(), 120, 1.2566), (O3(), 48, 1.59), (O2(), 12, math.tau / 6 - 1e-9), (SO2(), 5, 1.2566)],
    ids=name,
)
def test_repulsion_on_compact_groups(group, n, apart):
    """60 rotations of the icosahedron are 72° = 1.2566 rad apart; O(3) has as even a grid as SO(3)."""
    grid = repulsion(group, n)
    assert len(grid) == n
    assert closest(grid) >= apart
    assert float(grid.weights.sum()) == pytest.approx(group.volume)
    assert group.component(grid.elements).bincount().unique().numel() == 1


def test_repulsion_on_a_torus_beats_the_square_lattice():
    torus = Product(SO2(), SO2())
    grid = repulsion(torus, 16)
    assert closest(grid) > math.tau / 4
    assert repulsion(torus, 16) == grid
    apart = torus.offset(grid.elements.unsqueeze(1), grid.elements).norm(dim=-1).fill_diagonal_(math.inf)
    assert grid.spacing == pytest.approx(float(apart.min(1).values.mean())), "the mean distance of neighbours"
    assert grid.spacing > 1.0001 * closest(grid)
    assert repulsion(torus, 16, seed=1) != grid


def test_many_elements_on_a_torus_come_near_the_hexagonal_lattice():
    """No sixty points have neighbours farther apart than √(2/√3 · area/60), which is less than a radian."""
    hexagonal = math.sqrt(2 / math.sqrt(3) * math.tau**2 / 60)
    assert 0.95 * hexagonal < closest(repulsion(Product(SO2(), SO2()), 60)) < hexagonal < 1


def mean(basis: SplineBasis, n: int = 16) -> float:
    """The mean of the splines' sum over the group: Gauss' nodes for cos β, even angles α and γ, SciPy's rotations."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    turns = np.arange(n) * math.tau / n
    angles = np.stack(np.meshgrid(turns, np.arccos(nodes), turns, indexing="ij"), -1).reshape(-1, 3)
    weight = torch.from_numpy(np.tile(np.repeat(weights, n), n) / (2 * n**2))
    rotations = torch.from_numpy(scipy.spatial.transform.Rotation.from_euler("ZYZ", angles).as_matrix())
    group = basis.grid.group
    if group.element_shape == (3,):
        return float(basis(rotations[..., 2]).sum(-1) @ weight)
    both = (rotations, -rotations) if isinstance(group, O3) else (rotations,)
    return float(sum(basis(part).sum(-1) @ weight for part in both) / len(both))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_splines_on_curved_groups_have_mean_one(degree):
    grids = uniform(SO3(), 24), repulsion(SO3(), 40), uniform(O3(), 48), uniform(Sphere(), 12), repulsion(Sphere(), 50)
    for grid in grids:
        basis = SplineBasis(grid, degree=degree)
        assert mean(basis) == pytest.approx(1, abs=6e-3)
    assert SplineBasis(uniform(SO3(), 24), scale=0.5).height == 1, "a scale of one's own is left alone"
    assert SplineBasis(local(SO3(), 7, 0.5)).height == 1, "and so are a few centres"


def test_layers_accept_steps_per_axis_in_space():
    basis = SplineBasis(lattice(2, (3, 5), spacing=(1.0, 0.5)))
    assert basis.widths == (1.0, 0.5)
    assert Lift(1, 1, 5, uniform(SO2(), 4), x_basis=basis).weight.shape == (1, 1, 15)
    assert GConv(1, 1, 1, uniform(SIM2, (4, 2), spacing=(None, STEP))).weight.shape == (1, 1, 1, 8)


def test_the_volume_is_the_product_of_volumes() -> None:
    """Of compact groups; where one has none, there is none."""
    assert Product(SO2(), SO2()).volume == pytest.approx(4 * math.pi**2)
    assert Product(SO2(), Scale(2)).volume is None
