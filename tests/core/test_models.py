"""The paper's two networks: every column of both tables, layer by layer."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import liespline as ls
import oracle
from liespline import models

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")

# tab. GCNNPCAM: N_k: layers 1 to 7 and the total. Layer 5 at N_k = 8 is misprinted as 7,178; the total is right.
PCAM = {
    1: ([2520, 33600, 33600, 33600, 2560, 1024, 32], 106936),
    3: ([1449, 33327, 33327, 33327, 4416, 1024, 32], 106902),
    4: ([1260, 33600, 33600, 33600, 5120, 1024, 32], 108236),
    5: ([1134, 34020, 34020, 34020, 5760, 1024, 32], 110010),
    8: ([882, 32928, 32928, 32928, 7168, 1024, 32], 107890),
    12: ([693, 30492, 30492, 30492, 8448, 1024, 32], 101673),
    16: ([630, 33600, 33600, 33600, 10240, 1024, 32], 112726),
}
# tab. GCNNCelebA. The total at N_k = 5 is misprinted as 123,589.
CELEBA = {
    1: ([2025, 18225, 18225, 18225, 18225, 18225, 15552, 9216, 2048, 320], 120286),
    2: ([1575, 22050, 22050, 11025, 22050, 22050, 12096, 9216, 2048, 320], 124480),
    3: ([1275, 21675, 21675, 7225, 21675, 21675, 9792, 9216, 2048, 320], 116576),
    4: ([1125, 22500, 22500, 5625, 22500, 22500, 8640, 9216, 2048, 320], 116974),
    5: ([1050, 24500, 24500, 4900, 24500, 24500, 8064, 9216, 2048, 320], 123598),
}


def counts(net: nn.Module) -> list[int]:
    return [m.weight.numel() for m in net.modules() if isinstance(m, ls.Lift | ls.GConv | nn.Conv2d)]


@pytest.mark.parametrize("n_k", PCAM)
def test_pcam_has_the_tables_parameters(n_k: int) -> None:
    layers, total = PCAM[n_k]
    # Four local splines lie half a step off the grid, evenly about the identity.
    for kernel in ("local",) if n_k in (3, 5) else ("dense", "local") if n_k == 4 else ("dense",):
        found = counts(models.pcam(max(n_k, 4) if n_k > 1 else 1, n_k, kernel))
        assert found == layers
        assert sum(found) == total
        assert found == counts(models.pcam(max(n_k, 4) if n_k > 1 else 1, n_k, kernel, kernel_size=7))


@pytest.mark.parametrize("n_k", CELEBA)
@pytest.mark.parametrize(("kernel", "preset"), [("dense", "paper"), ("dense", "released"), ("local", "released")])
def test_celeba_has_the_tables_parameters(n_k: int, kernel: str, preset: str) -> None:
    layers, total = CELEBA[n_k]
    found = counts(models.celeba(n_k, n_k, kernel, preset=preset))
    assert found == layers
    assert sum(found) == total


@pytest.mark.parametrize(
    ("n_h", "n_k", "kernel", "size"),
    [(1, 1, "dense", 5), (8, 8, "dense", 5), (8, 4, "dense", 7), (8, 4, "atrous", 5), (8, 3, "local", 5)],
)
def test_pcam_maps_patches_to_two_logits_that_quarter_turns_leave(n_h: int, n_k: int, kernel: str, size: int) -> None:
    net = models.pcam(n_h, n_k, kernel, kernel_size=size).double().eval()
    x = torch.randn(2, 3, 88, 88, dtype=torch.float64)
    out = net(x)
    assert out.shape == (2, 2)
    same = (net(torch.rot90(x, 1, (-2, -1))) - out).abs().max() < 1e-10
    assert same == (n_h > 1)  # the 2-D baseline is not invariant


def test_the_kinds_of_kernel_are_the_papers() -> None:
    grid = ls.uniform(ls.SO2(), 16)
    dense, atrous, local = (
        models.kernels.h_basis(grid, k, 8 if k != "local" else 3) for k in ("dense", "atrous", "local")
    )
    assert dense.width == pytest.approx(2 * torch.pi / 8)
    assert atrous.width == local.width == pytest.approx(2 * torch.pi / 16)
    assert torch.allclose(
        local.grid.elements[:, 0], torch.tensor([-1.0, 0, 1], dtype=torch.float64) * 2 * torch.pi / 16
    )
    assert torch.equal(dense.grid.elements, ls.uniform(ls.SO2(), 8).elements)


def test_splines_spread_over_what_the_grid_covers() -> None:
    scales, step = ls.uniform(ls.Scale(2), 5, spacing=0.3), 0.6
    basis = models.kernels.h_basis(scales, "dense", 3)
    assert basis.grid.elements[:, 0].log().tolist() == pytest.approx([0, step, 2 * step])
    assert basis.width == pytest.approx(step)
    turns = ls.uniform(ls.SO3(), 24)
    assert models.kernels.h_basis(turns, "dense", 12).grid == ls.uniform(ls.SO3(), 12)
    assert models.kernels.h_basis(turns, "atrous", 7).grid == ls.repulsion(ls.SO3(), 7)
    assert models.kernels.h_basis(turns, "atrous", 7).width == turns.spacing
    with pytest.raises(ValueError, match=r"n_k = 6 splines cannot be spread over Grid\(Scale.*local kernel"):
        models.kernels.h_basis(scales, "dense", 6)


def test_projections_and_scales_are_the_papers() -> None:
    """Maximum over rotations; mean over the scales √2^i, with centres about the identity at any first scale."""
    assert [m.reduce for m in models.pcam(4, 4).modules() if isinstance(m, ls.Project)] == ["max"]
    net = models.celeba(3, 3, "dense", scale=2.0)
    assert [m.reduce for m in net.modules() if isinstance(m, ls.Project)] == ["mean", "mean"]
    for layer in (m for m in net.modules() if isinstance(m, ls.GConv)):
        assert layer.grid.elements[:, 0].tolist() == pytest.approx([2, 2 * 2**0.5, 4])
        assert layer.h_basis.grid.elements[:, 0].tolist() == pytest.approx([1, 2**0.5, 2])
        assert layer.h_basis.width == pytest.approx(0.5 * math.log(2))


@pytest.mark.parametrize(("n_h", "largest"), [(2, 1.6), (3, 2.0), (4, 2.8), (5, 4.0)])
def test_the_released_scales_and_splines(n_h: int, largest: float) -> None:
    """Scales fill a range, splines lie ln(range)/N_h apart, and dense kernels are local ones with N_k = N_h."""
    nets = [models.celeba(n_h, n_k, k, preset="released") for n_k, k in ((n_h, "dense"), (n_h, "local"), (3, "local"))]
    for net, n_k in zip(nets, (n_h, n_h, 3), strict=True):
        layers = [m for m in net.modules() if isinstance(m, ls.GConv)]
        assert len(layers) == 4
        for layer in layers:
            scales = layer.grid.elements[:, 0].log()
            assert scales.tolist() == pytest.approx([i * math.log(largest) / (n_h - 1) for i in range(n_h)])
            width = math.log(largest) / n_h
            assert layer.h_basis is not None
            assert layer.h_basis.width == pytest.approx(width)
            centres = layer.h_basis.grid.elements[:, 0].log().tolist()
            steps = {2: [0, 1], 3: [-1, 0, 1], 4: [-1, 0, 1, 2], 5: [-2, -1, 0, 1, 2]}[n_k]
            assert centres == pytest.approx([j * width for j in steps])


def layers_of(net: nn.Module) -> list[ls.Lift | ls.GConv]:
    return [m for m in net.modules() if isinstance(m, ls.Lift | ls.GConv)]


def test_the_papers_windows_end_at_three_times_each_scale() -> None:
    """Splines reach 3.5 times the scale: each scale has the samples y with |y| < 3s, so all are cut alike."""
    for layer in layers_of(models.celeba(5, 3, "local")):
        sizes = [size[0] for size in layer.window.sizes]
        scales = layer.out_grid.elements[:, 0].tolist()
        assert sizes == [2 * (math.ceil(3 * s - 1e-6) - 1) + 1 for s in scales]


@pytest.mark.parametrize(("n_h", "side"), [(2, 9), (3, 13), (4, 17), (5, 25)])
def test_the_released_scales_share_one_window(n_h: int, side: int) -> None:
    """By hand from 2⌊3s⌋ + 1 with s = 1.6, 2, 2.8, 4; in it lies each scale's kernel by the formula."""
    layers = layers_of(models.celeba(n_h, 3, "local", preset="released"))
    assert len(layers) == 6
    for layer in layers:
        assert set(layer.window.sizes) == {(side, side)}
    lift = layers[0].double()
    np.testing.assert_allclose(lift.kernel().detach(), oracle.kernel(lift), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("scale", "side"), [(1.0, 7), (1.6, 9), (2.0, 13), (2.8, 17), (4.0, 25)])
def test_the_released_2d_networks(scale: float, side: int) -> None:
    assert models.celeba(1, 1, "dense", scale=scale)(torch.randn(1, 3, 16, 16)).shape == (1, 5, 16, 16)
    for layer in layers_of(models.celeba(1, 1, "dense", scale=scale, preset="released")):
        assert layer.window.largest == (side, side)
    x = torch.randn(1, 3, 16, 16)
    assert models.celeba(1, 1, "dense", scale=scale, preset="released")(x).shape == (1, 5, 16, 16)
