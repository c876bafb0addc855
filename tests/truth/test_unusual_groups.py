"""Groups that nobody here had in mind: four components, two speeds of rotation."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

from liespline import Group, MatrixGroup
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
