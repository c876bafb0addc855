"""How equivariant layers are on products, with reflections and in charts, on inputs that are moved exactly."""

from __future__ import annotations

import itertools
import math
import statistics

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.testing import equivariance_error

EIGHTH = math.pi / 4
STEP = 0.5 * math.log(2)
SIM2 = ls.Product(ls.SO2(), ls.Scale(2))


def network(grid: ls.Grid, k: int, out: ls.Grid | None = None, **given: object) -> nn.Sequential:
    h_basis = given.pop("h_basis", None)
    first = ls.Lift(1, 4, k, grid, dtype=torch.float64, **given)  # type: ignore[arg-type]
    second = ls.GConv(4, 4, k, grid, out_grid=out, h_basis=h_basis, dtype=torch.float64, **given)  # type: ignore[arg-type]
    return nn.Sequential(first, nn.ReLU(), second)


@pytest.mark.parametrize("group", [ls.O2(), ls.Product(ls.O2(), ls.Scale(2))], ids=repr)
def test_reflections_and_quarter_turns_are_exact(group: ls.Group) -> None:
    torch.manual_seed(0)
    flips = isinstance(group, ls.O2)
    grid = ls.uniform(group, 8) if flips else ls.uniform(group, (4, 2), spacing=(None, 0.3))
    net = network(grid, 5, padding=2)
    x = torch.randn(1, 1, 9, 9, dtype=torch.float64)
    still = net(x)
    for turns, mirrored in itertools.product(range(4), (False, True)):

        def moved(f: Tensor, turns: int = turns, mirrored: bool = mirrored) -> Tensor:
            return torch.rot90(f.flip(-1) if mirrored else f, turns, (-2, -1))

        h = torch.tensor([turns * math.pi / 2, -1.0 if mirrored else 1.0, 1.0][: 2 if flips else 3]).double()
        distance = group.offset(group.relative(h, grid.elements).unsqueeze(1), grid.elements).norm(dim=-1)
        source = distance.argmin(1)
        assert float(distance.min(1).values.max()) < 1e-6  # 2π in float32
        assert (net(moved(x)) - moved(still[:, :, source])).abs().max() < 1e-12


def test_the_48_symmetries_of_the_cube_are_exact() -> None:
    torch.manual_seed(0)
    grid = ls.uniform(ls.O3(), 48)
    net = nn.Sequential(
        ls.Lift(1, 1, 4, grid, dtype=torch.float64), nn.ReLU(), ls.GConv(1, 1, 3, grid, dtype=torch.float64)
    )
    x = torch.randn(1, 1, 6, 6, 6, dtype=torch.float64)
    still = net(x).detach()
    for h in grid.elements[1::3]:
        source = [int((h.T @ k - grid.elements).abs().amax((1, 2)).argmin()) for k in grid.elements]
        axes = [int(row.abs().argmax()) for row in h]

        def moved(f: Tensor, h: Tensor = h, axes: list[int] = axes) -> Tensor:
            """f(h⁻¹x): axis i of the result is axis `axes[i]` of f, backwards where the sign is negative."""
            lead = f.ndim - 3
            f = f.permute(*range(lead), *(lead + a for a in axes))
            return f.flip([lead + i for i in range(3) if h[i, axes[i]] < 0])

        assert (net(moved(x)) - moved(still[:, :, source])).abs().max() < 1e-12 * float(still.abs().max().clamp_min(1))


CROSS = ls.Grid(ls.Translation(2), torch.tensor([[0.0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]), torch.ones(5), 1.0)


@pytest.mark.parametrize(("k", "centres"), [(5, CROSS), (7, None)], ids=["5", "7"])
def test_flips_about_axes_at_22_degrees(k: int, centres: ls.Grid | None) -> None:
    """8 rotations × 2. In 5×5 with the five centres that stay inside; the default nine there have twice as much."""
    grid = ls.uniform(ls.O2(), 8)
    flips = torch.tensor([[EIGHTH, -1], [3 * EIGHTH, -1]], dtype=torch.float64)
    errors = []
    for seed in range(12):
        torch.manual_seed(seed)
        net = network(grid, k, x_basis=None if centres is None else ls.SplineBasis(centres))
        errors.append(equivariance_error(net, grid, size=2 * k + 1, elements=flips, images=2, seed=seed))
    assert statistics.median(errors) <= 1.2e-2


def moved_output(grid: ls.Grid, move: Tensor, at: Tensor, h_basis: ls.SplineBasis, blur: float, seed: int) -> float:
    """‖Φ(L_g f)(h) − Φ(f)(g⁻¹h)‖ / ‖Φ(f)(g⁻¹h)‖ at the centre: the output grid moves, so no grid need be closed."""
    group = grid.group
    grids = [ls.Grid(group, e, torch.ones(len(e)), grid.spacing) for e in (at, group.relative(move, at))]
    torch.manual_seed(seed)
    nets = [network(grid, 5, out, h_basis=h_basis) for out in grids]
    nets[1].load_state_dict(nets[0].state_dict())
    size = sum(max(max(s) for net in nets for s in net[i].window.sizes) for i in (0, 2)) - 1
    size += 1 - size % 2
    axis = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    points = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
    generator = torch.Generator().manual_seed(seed)
    means = 3 * torch.randn(12, 2, dtype=torch.float64, generator=generator)
    heights = torch.randn(12, dtype=torch.float64, generator=generator)

    def image(y: Tensor) -> Tensor:
        return (heights * (-(y.unsqueeze(-2) - means).square().sum(-1) / (2 * blur**2)).exp()).sum(-1)[None, None]

    with torch.no_grad():
        found, expected = nets[0](image(group.pull(move, points))), nets[1](image(points))
    middle = found.shape[-1] // 2
    found, expected = (f[..., middle, middle] for f in (found, expected))
    return float((found - expected).norm() / expected.norm())


@pytest.mark.parametrize(("turn", "zoom"), [(EIGHTH, 1.0), (0.0, math.sqrt(2)), (EIGHTH, math.sqrt(2))])
def test_sim2_away_from_the_ends_of_its_scales(turn: float, zoom: float) -> None:
    grid = ls.uniform(SIM2, (8, 4), spacing=(None, STEP))
    at = grid.elements[(grid.elements[:, 1] - 2).abs() < 0.1][:3]
    basis = ls.SplineBasis(ls.local(SIM2, (3, 3), grid.spacing), degree=1)
    move = torch.tensor([turn, zoom], dtype=torch.float64)
    errors = [moved_output(grid, move, at, basis, 4.0, seed) for seed in range(3)]
    assert statistics.median(errors) <= 2e-2


GL2 = ls.GL2()


@pytest.mark.parametrize("move", ["shear", "squeeze"])
def test_gl2_on_a_local_grid(move: str) -> None:
    """5 × 5 squeezes and 8 turns: 200 elements; kernels of degree 2 as wide as a step; moved by one step."""
    step = 0.3
    grid = ls.local(GL2, (1, 5, 5, 8), (1.0, step, step, EIGHTH))
    basis = ls.SplineBasis(ls.local(GL2, 1, grid.spacing), degree=2)
    shear = torch.tensor([[1.0, math.sqrt(2) * step], [0, 1]], dtype=torch.float64)
    g = shear if move == "shear" else GL2.exp(torch.tensor([0, step, 0, 0], dtype=torch.float64))
    at = torch.eye(2, dtype=torch.float64)[None]
    errors = [moved_output(grid, g, at, basis, 3.0, seed) for seed in range(5)]
    assert statistics.median(errors) <= 5e-2


def test_the_measure_sees_a_wrong_group() -> None:
    """Planted fault: the output moved by g instead of g⁻¹."""
    grid = ls.local(GL2, (1, 5, 5, 8), (1.0, 0.3, 0.3, EIGHTH))
    basis = ls.SplineBasis(ls.local(GL2, 1, grid.spacing), degree=2)
    g = GL2.exp(torch.tensor([0, 0.3, 0, 0], dtype=torch.float64))

    class Swapped(ls.GL2):
        def relative(self, g: Tensor, h: Tensor) -> Tensor:
            return self.product(g, h)

    swapped = Swapped()
    broken = ls.Grid(swapped, grid.elements, grid.weights, grid.spacing)
    kernel = ls.SplineBasis(ls.Grid(swapped, basis.grid.elements, basis.grid.weights, basis.grid.spacing), degree=2)
    assert moved_output(broken, g, torch.eye(2, dtype=torch.float64)[None], kernel, 3.0, 0) > 0.1
