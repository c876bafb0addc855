"""Grids whose elements do not count the same, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from liespline import SO2, Grid, Project, Scale, local, uniform
from liespline.functional import left_regular
from liespline.groups import Element

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
