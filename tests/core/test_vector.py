"""Project("vector"): vectors read off H turn with the input."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

import liespline as ls

X64 = torch.float64


def network(grid: ls.Grid, window: int = 5, activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        ls.Lift(1, 4, window, grid, padding="same"),
        activation(),
        ls.GConv(4, 3, window, grid, padding="same"),
        ls.Project("vector", grid),
    ).double()


def test_the_sum_by_hand() -> None:
    n = 5
    grid = ls.uniform(ls.SO2(), n)
    x = torch.randn(2, 3, n, 4, 6, dtype=X64)
    found = ls.Project("vector", grid).double()(x)
    assert found.shape == (2, 3, 2, 4, 6)
    angles = [2 * math.pi * i / n for i in range(n)]
    for axis, wave in enumerate((math.cos, math.sin)):
        right = sum(wave(angle) * x[:, :, i] for i, angle in enumerate(angles)) / n
        assert (found[:, :, axis] - right).abs().max() < 1e-12


@pytest.mark.parametrize("size", [12, 13])
def test_quarter_turns_turn_the_field_exactly(size: int) -> None:
    grid = ls.uniform(ls.SO2(), 8)
    net = network(grid)
    x = torch.randn(2, 1, size, size, dtype=X64)
    still, turned = net(x), net(torch.rot90(x, 1, (-2, -1)))
    assert still.abs().max() > 1e-2
    # A positive quarter turn takes axis 0 to axis 1 and axis 1 to minus axis 0.
    rows, columns = torch.rot90(still, 1, (-2, -1)).unbind(2)
    assert (turned - torch.stack((-columns, rows), 2)).abs().max() < 1e-12
    wrong = torch.stack((rows, columns), 2)  # the planted fault: moved, but not turned
    assert (turned - wrong).abs().max() > 1e-2


def test_the_rotations_of_the_cube_turn_the_field_exactly() -> None:
    grid = ls.uniform(ls.SO3(), 24)
    net = network(grid)
    x = torch.randn(1, 1, 8, 8, 8, dtype=X64)
    still = net(x)
    for h in grid.elements[[3, 11, 20]]:
        moved = _moved(still, h)
        expected = torch.einsum("ij,bcj...->bci...", h, moved)
        assert (net(_moved(x, h)) - expected).abs().max() < 1e-10


def _moved(x: Tensor, h: Tensor) -> Tensor:
    """The values of x at h⁻¹y, for a signed permutation h of the last three axes."""
    axes = h.abs().argmax(1)
    lead = x.ndim - 3
    flips = [lead + i for i in range(3) if h[i, axes[i]] < 0]
    return x.permute(*range(lead), *(lead + axes).tolist()).flip(flips)


@pytest.mark.parametrize(
    ("grid", "window", "size", "activation"),
    [
        (ls.uniform(ls.SO2(), 8), 7, 15, nn.SiLU),
        (ls.uniform(ls.SO2(), 12), 7, 15, nn.SiLU),
        (ls.uniform(ls.SO2(), 16), 7, 15, nn.ReLU),
        (ls.uniform(ls.SO3(), 60), 5, 9, nn.SiLU),
    ],
    ids=["8 angles", "12 angles", "16 angles", "60 rotations"],
)
def test_off_grid_turns_turn_fresh_networks(grid: ls.Grid, window: int, size: int, activation: type[nn.Module]) -> None:
    """Blobs that are evaluated, not interpolated, at turned points; vectors compared at the centre."""
    net = network(grid, window, activation)
    group, d = grid.group, grid.group.space_dim
    torch.manual_seed(1)
    means, heights = 3 * torch.randn(6, 12, d, dtype=X64), torch.randn(6, 12, dtype=X64)
    axes = [torch.arange(size, dtype=X64) - (size - 1) / 2] * d
    points = torch.cartesian_prod(*axes)

    def at_centre(where: Tensor) -> Tensor:
        square = torch.cdist(where, means.flatten(0, 1)).square().view(-1, 6, 12)
        images = (heights * (-square / (2 * 2.5**2)).exp()).sum(-1).T
        with torch.no_grad():
            return net(images.reshape(6, 1, *[size] * d)).flatten(3)[..., size**d // 2]

    still = at_centre(points)
    errors = []
    for _ in range(2 if d == 3 else 6):
        h = group.exp(torch.randn(group.dim, dtype=X64))
        expected = still @ group.matrix(h).T
        errors.append(float((at_centre(group.pull(h, points)) - expected).norm() / expected.norm()))
    assert max(errors) <= 1e-2


def test_every_group_has_directions() -> None:
    scales = ls.uniform(ls.Scale(2), 3, spacing=0.4)
    assert torch.allclose(ls.functional.directions(scales)[:, 0], scales.elements[:, 0])
    sphere = ls.uniform(ls.Sphere(), 6)
    assert torch.allclose(ls.functional.directions(sphere), sphere.elements, atol=1e-12)
    assert ls.Project("vector", sphere)(torch.randn(1, 2, 6, 3, 3, 3)).shape == (1, 2, 3, 3, 3, 3)
