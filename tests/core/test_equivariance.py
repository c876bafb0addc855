"""How equivariant layers are between the symmetries of their pixels, by measured numbers.

Those of pixels are exact: tests of drawn networks and of whole ones show it.
"""

import math
import statistics

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.testing import equivariance_error

X64 = torch.float64
EIGHTH, STEP = math.pi / 4, 0.5 * math.log(2)
SIM2, GL2 = ls.Product(ls.SO2(), ls.Scale(2)), ls.GL2()


def network(grid: ls.Grid, k: int, out: ls.Grid | None = None, width: int = 4, **given: object) -> nn.Sequential:
    h_basis = given.pop("h_basis", None)
    first = ls.Lift(1, width, k, grid, dtype=X64, **given)  # type: ignore[arg-type]
    second = ls.GConv(width, width, k, grid, out_grid=out, h_basis=h_basis, dtype=X64, **given)  # type: ignore[arg-type]
    return nn.Sequential(first, nn.ReLU(), second)


# window: the lift alone, and lift → ReLU → g-corr; escnn's g-corr: 1.1e-2, 1.8e-2, 1.7e-2
@pytest.mark.parametrize(("window", "lift", "gconv"), [(5, 9e-3, 1.4e-2), (7, 3e-3, 7e-3), (9, 2e-3, 6e-3)])
def test_se2_at_twelve_orientations(window: int, lift: float, gconv: float) -> None:
    grid = ls.uniform(ls.SO2(), 12)
    errors = []
    for seed in range(7):
        torch.manual_seed(seed)
        net = network(grid, window)
        measure = {"size": 2 * window + 1, "images": 4, "seed": seed}
        errors.append((equivariance_error(net[0], grid, **measure), equivariance_error(net, grid, **measure)))
    assert statistics.median(e[0] for e in errors) <= lift
    assert statistics.median(e[1] for e in errors) <= gconv


CROSS = ls.Grid(ls.Translation(2), torch.tensor([[0.0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]]), torch.ones(5), 1.0)


@pytest.mark.parametrize(("k", "centres"), [(5, CROSS), (7, None)], ids=["5", "7"])
def test_flips_about_axes_at_22_degrees(k: int, centres: ls.Grid | None) -> None:
    """8 rotations × 2. In 5×5 with the five centres that stay inside; the default nine there have twice as much."""
    grid = ls.uniform(ls.O2(), 16)
    flips = torch.tensor([[EIGHTH, -1], [3 * EIGHTH, -1]], dtype=X64)
    errors = []
    for seed in range(12):
        torch.manual_seed(seed)
        net = network(grid, k, x_basis=None if centres is None else ls.SplineBasis(centres))
        errors.append(equivariance_error(net, grid, size=2 * k + 1, elements=flips, images=2, seed=seed))
    assert statistics.median(errors) <= 1.2e-2


@pytest.mark.parametrize(("window", "centres"), [(5, ls.lattice(2, 5)), (3, ls.disc(3))])
def test_what_scalings_cut_off_costs_equivariance_and_is_told(window: int, centres: ls.Grid) -> None:
    """The paper's 25 centres of degree 2 in 5×5, and nine in 3×3."""
    grid = ls.uniform(ls.Scale(2), 5, spacing=STEP)
    basis = ls.SplineBasis(centres, degree=2 if window == 5 else 3)
    ls.nn.arguments._told.clear()
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match="energy falls outside"):
        cut = ls.Lift(1, 4, window, grid, x_basis=basis, dtype=X64)
    kept = ls.Lift(1, 4, 5, grid, dtype=X64)
    measure = {"size": 61, "elements": grid.elements[1:2], "images": 2, "blur": 3.0}
    assert equivariance_error(cut, grid, **measure) > 4e-2
    assert equivariance_error(kept, grid, **measure) < 1e-2


def moved_output(grid: ls.Grid, move: Tensor, at: Tensor, h_basis: ls.SplineBasis, blur: float, seed: int) -> float:
    """‖Φ(L_g f)(h) − Φ(f)(g⁻¹h)‖ / ‖Φ(f)(g⁻¹h)‖ at the centre: the output grid moves, so no grid need be closed."""
    group = grid.group
    grids = [ls.Grid(group, e, torch.ones(len(e)), grid.spacing) for e in (at, group.relative(move, at))]
    torch.manual_seed(seed)
    nets = [network(grid, 5, out, h_basis=h_basis) for out in grids]
    nets[1].load_state_dict(nets[0].state_dict())
    size = sum(max(max(s) for net in nets for s in net[i].window.sizes) for i in (0, 2)) - 1
    size += 1 - size % 2
    axis = torch.arange(size, dtype=X64) - (size - 1) / 2
    points = torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)
    generator = torch.Generator().manual_seed(seed)
    means = 3 * torch.randn(12, 2, dtype=X64, generator=generator)
    heights = torch.randn(12, dtype=X64, generator=generator)

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
    move = torch.tensor([turn, zoom], dtype=X64)
    errors = [moved_output(grid, move, at, basis, 4.0, seed) for seed in range(3)]
    assert statistics.median(errors) <= 2e-2


@pytest.mark.parametrize("move", ["shear", "squeeze"])
def test_gl2_on_a_local_grid(move: str) -> None:
    """5 × 5 squeezes and 8 turns: 200 elements; kernels of degree 2 as wide as a step; moved by one step."""
    step = 0.3
    grid = ls.local(GL2, (1, 5, 5, 8), (1.0, step, step, EIGHTH))
    basis = ls.SplineBasis(ls.local(GL2, 1, grid.spacing), degree=2)
    shear = torch.tensor([[1.0, math.sqrt(2) * step], [0, 1]], dtype=X64)
    g = shear if move == "shear" else GL2.exp(torch.tensor([0, step, 0, 0], dtype=X64))
    at = torch.eye(2, dtype=X64)[None]
    errors = [moved_output(grid, g, at, basis, 3.0, seed) for seed in range(5)]
    assert statistics.median(errors) <= 5e-2


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
    net = nn.Sequential(
        *network(grid, window, width=2 if grid.group.space_dim == 3 else 4, padding="same"), ls.Project("vector", grid)
    ).double()
    net[1] = activation()
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
