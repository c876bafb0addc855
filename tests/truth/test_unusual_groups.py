"""Networks on uneven grids and of unusual groups, from the command to their numbers."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from liespline import SO2, Grid, Group, MatrixGroup, Project, Scale, local, uniform
from liespline.functional import left_regular
from liespline.groups import Element
from liespline.testing import check_group


class Signs(Group):
    """diag(a, b), a and b of either sign: four components, numbered by their signs. One product may be wrong."""

    dim, space_dim, element_shape = 2, 2, (2,)

    def __init__(self, wrong: tuple[int, int] | None = None) -> None:
        self.wrong = wrong

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        out = g * h
        if self.wrong:
            bad = (self.component(g) == self.wrong[0]) & (self.component(h) == self.wrong[1])
            out = torch.where(bad.unsqueeze(-1), 1.01 * out, out)
        return out

    def inverse(self, h: Tensor) -> Tensor:
        return 1 / h

    def exp(self, a: Tensor) -> Tensor:
        return a.exp()

    def log(self, h: Tensor) -> Tensor:
        return h.abs().log()

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return h * x

    def component(self, h: Tensor) -> Tensor:
        return (h[..., 0] < 0).long() + 2 * (h[..., 1] < 0).long()

    def representatives(self, *, dtype=None, device=None) -> Tensor:
        return torch.tensor([[1.0, 1], [-1, 1], [1, -1], [-1, -1]], dtype=dtype, device=device)

    def contains(self, h: Tensor) -> Tensor:
        return (h != 0).all(-1)


def test_four_components_are_a_group() -> None:
    check_group(Signs())


@pytest.mark.parametrize("pair", list(itertools.product(range(4), repeat=2)))
def test_one_wrong_pair_of_components_is_found(pair: tuple[int, int]) -> None:
    with pytest.raises(AssertionError, match=r"associativity|homomorphism|closure|identity|inverse"):
        check_group(Signs(pair))


J = torch.tensor([[0.0, -1], [1, 0]])


@pytest.mark.parametrize(
    ("speeds", "period"), [((1, 2), 1), ((2, 1), 1), ((2, 4), 0.5), ((2, 3), None), ((1, 1), 1), ((0, 3), 1 / 3)]
)
def test_the_period_is_that_of_the_slowest_rotation(speeds: tuple[int, int], period: float | None) -> None:
    """block_diag(mJ, nJ) closes after one turn of the slower block where the faster one closes with it."""
    group = MatrixGroup([torch.block_diag(*(n * J for n in speeds)).tolist()])
    wanted = None if period is None else pytest.approx(math.tau * period)
    assert group.period == (wanted,)
    if period is not None:
        once = group.exp(torch.tensor([math.tau * period], dtype=torch.float64))
        assert torch.allclose(once, torch.eye(4, dtype=torch.float64), atol=1e-9)
        half = group.exp(torch.tensor([math.pi * period], dtype=torch.float64))
        assert not torch.allclose(half, torch.eye(4, dtype=torch.float64), atol=1e-3)


HALVES = torch.float64


def moved_by(scale: float, values: torch.Tensor, grid: Grid) -> list[float]:
    """L_h of a map that is the same at every pixel: its values over H in the middle."""
    f = values.to(HALVES).view(1, 1, -1, 1, 1).expand(1, 1, len(grid), 5, 5)
    h = torch.tensor([scale], dtype=HALVES)
    return left_regular(Element(torch.zeros(2, dtype=HALVES), h), f, Scale(2), grid)[0, 0, :, 2, 2].tolist()


def test_half_a_step_on_a_grid_of_scales():
    """Scaled by √2 over [1, 2, 4]: each value lies half-way to the next smaller; below 1 there is nothing."""
    grid = uniform(Scale(2), 3, spacing=math.log(2))
    assert moved_by(2**0.5, torch.tensor([1.0, 1, 1]), grid) == pytest.approx([0.5, 1, 1])
    assert moved_by(2**0.5, torch.tensor([2.0, 4, 8]), grid) == pytest.approx([1, 3, 6])
    assert moved_by(2**-0.5, torch.tensor([2.0, 4, 8]), grid) == pytest.approx([3, 6, 4])
    assert moved_by(2**0.25, torch.tensor([2.0, 4, 8]), grid) == pytest.approx([1.5, 3.5, 7])
    assert moved_by(2, torch.tensor([2.0, 4, 8]), grid) == pytest.approx([0, 2, 4])
    assert moved_by(8, torch.tensor([2.0, 4, 8]), grid) == pytest.approx([0, 0, 0])


def test_a_grid_about_another_element():
    """[½, 1, 2]: the identity lies in the middle."""
    grid = local(Scale(2), 3, math.log(2))
    assert grid.elements.flatten().tolist() == pytest.approx([0.5, 1, 2])
    assert moved_by(2**0.5, torch.tensor([2.0, 4, 8]), grid) == pytest.approx([1, 3, 6])


@pytest.mark.parametrize("weights", [(1.0, 2.0, 3.0), (3.0, 1.0, 1.0), (2.0, 2.0, 2.0)])
def test_directions_count_as_much_as_their_elements(weights):
    """Σ w F (cos θ, sin θ) / Σ w, at angles that lie anyhow."""
    h = torch.tensor([[0.0], [1.0], [3.0]], dtype=HALVES)
    w, field = torch.tensor(weights, dtype=HALVES), torch.tensor([0.3, -1.0, 2.0], dtype=HALVES)
    found = Project("vector", Grid(SO2(), h, w, 1.0)).double()(field.view(1, 1, 3, 1, 1)).flatten()
    wanted = (w * field * torch.stack([h[:, 0].cos(), h[:, 0].sin()])).sum(1) / w.sum()
    assert torch.allclose(found, wanted)


def test_means_count_as_much_as_their_elements():
    h, w = torch.tensor([[1.0], [2.0], [8.0]], dtype=HALVES), torch.tensor([1.0, 2.0, 3.0], dtype=HALVES)
    grid, field = Grid(Scale(2), h, w, math.log(2)), torch.tensor([0.3, -1.0, 2.0], dtype=HALVES)
    found = Project("mean", grid).double()(field.view(1, 1, 3, 1, 1)).flatten()
    assert found.tolist() == pytest.approx([(0.3 - 2 + 6) / 6])
