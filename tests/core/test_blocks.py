"""Mixing over a finite group by blocks: the sum written out, and only where kernels commute with translations."""

import math

import pytest
import torch

import liespline as ls
from liespline import functional, ops, testing
from liespline.functional import translations
from liespline.grids.grid import same
from liespline.models.kernels import h_basis
from liespline.ops import choose

from .path_cases import Case, assert_same, naive

CUBE = ls.uniform(ls.SO3(), 24)
# Dimensions of the real irreps; one of complex type, such as a rotation's, stands once.
IRREPS = {
    ls.uniform(ls.Trivial(2), 1): [1],
    ls.uniform(ls.SO2(), 8): [1, 1, 2, 2, 2],
    ls.uniform(ls.O2(), 12): [1, 1, 1, 1, *[2] * 4],
    ls.uniform(ls.SO3(), 12): [1, 2, *[3] * 3],
    CUBE: [1, 1, *[2] * 2, *[3] * 6],
    ls.uniform(ls.SO3(), 60): [1, *[3] * 6, *[4] * 4, *[5] * 5],
}


@pytest.mark.parametrize("grid", IRREPS, ids=repr)
def test_blocks_are_those_of_the_irreps(grid: ls.Grid) -> None:
    found = translations.blocks(grid)
    assert found is not None
    waves, sizes = found
    assert list(sizes) == sorted(IRREPS[grid])
    n = len(grid)
    torch.testing.assert_close(waves.T @ waves, torch.eye(n, dtype=torch.float64), atol=1e-12, rtol=0)
    # Whatever commutes with left translations F(h) -> F(g⁻¹h) is cut: w(h⁻¹h̃) for any w.
    relative = grid.group.relative(grid.elements.unsqueeze(1), grid.elements)
    places = torch.stack([same(grid, row).int().argmax(1) for row in relative])
    kernel = torch.randn(n, dtype=torch.float64)[places]
    outside = 1 - torch.block_diag(*[torch.ones(size, size) for size in sizes]).double()
    assert ((waves.T @ kernel @ waves) * outside).abs().max() < 1e-12


@pytest.mark.parametrize("grid", [ls.uniform(ls.Scale(2), 3, spacing=0.7), ls.repulsion(ls.SO3(), 7)], ids=repr)
def test_elements_that_are_no_group_have_none(grid: ls.Grid) -> None:
    assert translations.blocks(grid) is None


@pytest.mark.parametrize("grid", IRREPS, ids=repr)
@pytest.mark.parametrize("window", [1, None])
def test_mixing_is_the_definition(grid: ls.Grid, window: int | None) -> None:
    torch.manual_seed(0)
    layer = ls.GConv(2, 3, window, grid, bias=False).double()
    space = () if window is None else (3, 2, 2)[: grid.group.space_dim]
    x = torch.randn(2, 2, len(grid), *space, dtype=torch.float64, requires_grad=True)
    case = Case(x, layer.weight, *layer.samples(), layer.window.sizes, (1,) * len(space), (0,) * len(space))
    for _ in range(2):  # what is kept is right too
        with ops.use("blocks"), choose.watched() as asked:
            out = layer(x)
        assert [path.name for path in asked[0].paths] == ["blocks"]
        assert_same(out, naive(case), (x, layer.weight), 1e-11)


def test_what_does_not_commute_is_not_cut() -> None:
    grid = ls.uniform(ls.SO2(), 8)
    assert ls.GConv(1, 1, 1, grid).plan.blocks
    assert not ls.GConv(1, 1, 5, grid).plan.blocks
    assert not ls.GConv(1, 1, 1, grid, out_grid=ls.uniform(ls.SO2(), 4)).plan.blocks
    layer = ls.GConv(1, 1, 1, grid).double()
    x_samples, h_samples = layer.samples()
    cut = translations.blocks(grid)
    assert ops.plan_of(h_samples, layer.window.sizes, x_samples, cut).blocks
    assert not ops.plan_of(h_samples + 1e-6 * torch.randn_like(h_samples), layer.window.sizes, x_samples, cut).blocks
    own = x_samples * torch.arange(1, 9).view(-1, 1, 1, 1, 1)  # windows that differ over H
    assert not ops.plan_of(h_samples, layer.window.sizes, own, cut).blocks


def test_many_channels_are_mixed_by_blocks_and_few_are_not() -> None:
    grid = ls.uniform(ls.SO2(), 16)
    separable = ls.nn.SeparableGConv(64, 64, 5, grid)
    first, _ = testing.engine(separable, torch.randn(2, 64, 16, 24, 24)).layers
    assert first.path == "blocks"
    assert first.prices["blocks"] == min(first.prices.values())
    for layer, x in (
        (ls.GConv(2, 2, 1, grid), torch.randn(2, 2, 16, 24, 24)),
        (ls.GConv(64, 64, 1, grid, stride=2), torch.randn(2, 64, 16, 25, 25)),
    ):
        (found,) = testing.engine(layer, x).layers
        assert found.path != "blocks"


@pytest.mark.parametrize("kind", ["dense", "local"])
def test_it_agrees_in_every_dtype_and_where_grids_have_moved(kind: str) -> None:
    layer = ls.GConv(3, 4, 1, CUBE, h_basis=h_basis(CUBE, kind, 7 if kind == "local" else None))
    x = torch.randn(2, 3, 24, 4, 4, 4)

    def both() -> tuple[torch.Tensor, torch.Tensor]:
        with ops.use("blocks"):
            found = layer(x)
        with ops.use("dense"):
            return found, layer(x)

    torch.testing.assert_close(*both())
    with ls.nn.shift(layer, CUBE.group.exp(torch.tensor([0.1, 0.2, 0.3]))):
        assert layer.plan.blocks
        torch.testing.assert_close(*both())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, right = both()
    assert found.dtype == torch.bfloat16
    assert (found - right).float().norm() / right.float().norm() < 2e-2


def test_compilers_and_transforms_follow() -> None:
    grid = ls.uniform(ls.O2(), 8)
    layer, x = ls.GConv(2, 2, None, grid).double(), torch.randn(3, 2, 8, dtype=torch.float64)
    right = functional.correlate(x, layer.weight, *layer.samples(), layer.bias)
    torch.compiler.reset()
    with ops.use("blocks"):
        torch.testing.assert_close(torch.compile(layer, backend="aot_eager", fullgraph=True)(x), right)
        torch.testing.assert_close(torch.vmap(layer)(x.unsqueeze(0)).squeeze(0), right)
        slope = torch.func.jvp(layer, (x,), (x,))[1]
    torch.testing.assert_close(slope, right - layer.bias.view(-1, 1))
    torch.compiler.reset()
    assert math.isfinite(float(right.detach().sum()))
