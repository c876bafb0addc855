"""Norms with Haar's weights: against loops in NumPy, torch's own, and the same function on two grids."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.nn import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, NormReLU

X64 = torch.float64
EIGHT = ls.uniform(ls.SO2(), 8)
KINDS: dict[str, Callable[..., nn.Module]] = {
    "batch": BatchNorm,
    "group": lambda channels, **options: GroupNorm(2, channels, **options),
    "instance": InstanceNorm,
    "layer": LayerNorm,
}
every_norm = pytest.mark.parametrize("kind", KINDS)


def crowded() -> ls.Grid:
    """Eight even angles and eight in one quarter; weights that integrate harmonics up to the sixth exactly."""
    angles = torch.cat([EIGHT.elements[:, 0], torch.linspace(0.05, 0.75, 8, dtype=X64)])
    order = angles.argsort()
    gaps = angles[order].diff(append=angles[order][:1] + 2 * math.pi)
    trapezoid = torch.empty(16, dtype=X64)
    trapezoid[order] = (gaps + gaps.roll(1)) / 2
    waves = torch.stack([wave(k * angles) for k in range(7) for wave in (torch.cos, torch.sin)])
    exact = torch.zeros(14, dtype=X64)
    exact[0] = 2 * math.pi
    weights = trapezoid + torch.linalg.pinv(waves) @ (exact - waves @ trapezoid)
    assert (waves @ weights - exact).abs().max() < 1e-12
    assert (weights[:8].max() / weights[8:].abs().min()) > 2
    return ls.Grid(ls.SO2(), angles.unsqueeze(1), weights, EIGHT.spacing)


def sampled(grid: ls.Grid) -> Tensor:
    """A function of images, channels, angles and space on the elements of a grid: (3, 4, N, 3, 2)."""
    angle = grid.elements[:, 0].view(-1, 1, 1)
    draw = torch.Generator().manual_seed(0)
    a, b, c = (torch.randn(3, 4, 1, 3, 2, dtype=X64, generator=draw) for _ in range(3))
    return a + 2 * b * torch.cos(angle) + c * torch.sin(2 * angle)


@every_norm
def test_the_same_function_on_two_grids_is_normalised_alike(kind: str) -> None:
    grid = crowded()
    torch.manual_seed(0)
    even, uneven = (KINDS[kind](4, grid=one, dtype=X64) for one in (EIGHT, grid))
    nn.init.normal_(even.weight)
    nn.init.normal_(even.bias)
    uneven.load_state_dict(even.state_dict())
    expected, found = even(sampled(EIGHT)), uneven(sampled(grid))
    assert (found[:, :, :8] - expected).abs().max() < 1e-6
    assert (KINDS[kind](4, dtype=X64)(sampled(grid))[:, :, :8] - expected).abs().max() > 0.1, "without Haar's weights"


@every_norm
def test_statistics_are_those_of_plain_loops(kind: str) -> None:
    grid = crowded()
    x, w = sampled(grid).numpy(), grid.weights.numpy()
    size = {"batch": (3, 1), "group": (1, 2), "instance": (1, 1), "layer": (1, 4)}[kind]  # images and channels
    right = np.empty_like(x)
    for n, c in itertools.product(range(0, 3, size[0]), range(0, 4, size[1])):
        total, square, volume = 0.0, 0.0, 0.0
        inside = list(itertools.product(range(n, n + size[0]), range(c, c + size[1]), range(16), range(3), range(2)))
        for at in inside:
            total, volume = total + w[at[2]] * x[at], volume + w[at[2]]
        for at in inside:
            square += w[at[2]] * (x[at] - total / volume) ** 2
        for at in inside:
            right[at] = (x[at] - total / volume) / math.sqrt(square / volume + 1e-3)
    norm = KINDS[kind](4, eps=1e-3, grid=grid, dtype=X64)
    assert np.abs(norm(torch.from_numpy(x)).detach().numpy() - right).max() < 1e-12
    if kind == "batch":
        mean = np.einsum("ncaxy,a->c", x, w) / (w.sum() * 3 * 6)
        assert np.abs(norm.running_mean.numpy() - 0.1 * mean).max() < 1e-12


@pytest.mark.parametrize("shape", [(2, 4, 8), (2, 4, 8, 5), (3, 4, 8, 5, 4), (1, 4, 8, 3, 3, 2), (0, 4, 8, 3, 3)])
def test_on_uniform_grids_they_are_torchs(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, dtype=X64) * 3 + 1
    for groups, ours in ((2, GroupNorm(2, 4, grid=EIGHT)), (4, InstanceNorm(4, grid=EIGHT)), (1, LayerNorm(4))):
        theirs = nn.GroupNorm(groups, 4).double()
        nn.init.normal_(theirs.weight)
        ours.double().load_state_dict(theirs.state_dict())
        assert torch.equal(ours(x), theirs(x))
    if len(shape) == 5:
        assert torch.allclose(InstanceNorm(4).double()(x), nn.InstanceNorm3d(4).double()(x), rtol=0, atol=1e-12)


@every_norm
def test_half_precision_has_float32_statistics(kind: str) -> None:
    grid = crowded()
    x = 100 + sampled(grid)
    norm = KINDS[kind](4, grid=grid)
    low = norm(x.bfloat16())
    assert low.dtype == torch.bfloat16
    expected = norm(x.bfloat16().float())
    assert (low.float() - expected).abs().max() <= 0.01 * expected.abs().max()
    with torch.autocast("cpu", torch.bfloat16):
        assert norm(x.bfloat16()).dtype == torch.bfloat16


def test_recomputed_and_empty_batches_of_a_crowded_grid() -> None:
    norm, x = BatchNorm(4, grid=crowded(), dtype=X64), sampled(crowded()).requires_grad_()
    ls.nn.norm.recomputed(norm, x).square().sum().backward()
    assert int(norm.num_batches_tracked) == 1
    norm(x[:0])
    assert norm.running_mean.isfinite().all()


@pytest.mark.parametrize("kind", ["batch", "instance", "layer"])
def test_norm_relu_has_the_norm_that_is_asked_for(kind: str) -> None:
    layer = NormReLU(4, 2, norm=kind, grid=EIGHT)
    assert type(layer[0]) is KINDS[kind]
    x = torch.randn(2, 4, 8, 6, 6)
    expected = nn.MaxPool3d((1, 2, 2))(KINDS[kind](4)(x).relu())
    assert torch.allclose(layer(x), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("norm", ["instance", "layer"])
@pytest.mark.parametrize("model", [ls.models.classifier, ls.models.resnet, ls.models.unet])
def test_networks_for_small_batches(model: Callable[..., nn.Module], norm: str) -> None:
    """In training an image's output does not depend on its batch, and quarter turns stay exact."""
    torch.manual_seed(0)
    net = model(1, 2, EIGHT, widths=(2, 3), norm=norm, **({} if model is ls.models.unet else {"dropout": 0.0})).double()
    x = torch.randn(3, 1, 25, 25, dtype=X64)
    torch.testing.assert_close(net(x)[:1], net(x[:1]), rtol=0, atol=1e-12)
    turned, still = net(x.rot90(1, (-2, -1))), net(x)
    expected = still.rot90(1, (-2, -1)) if model is ls.models.unet else still
    torch.testing.assert_close(turned, expected, rtol=0, atol=1e-6)
    assert sum(isinstance(part, KINDS["instance"] if norm == "instance" else LayerNorm) for part in net.modules()) > 1


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match='norm = \'weight\', must be "batch", "instance" or "layer"'):
        NormReLU(4, norm="weight")
    for kind in (BatchNorm, InstanceNorm):
        said = (
            rf"{kind.__name__}: x has shape \(2, 4, 5, 3, 3\); expected \(B, C, 16, \*space\), the 16 elements of Grid"
        )
        with pytest.raises(ValueError, match=said):
            kind(4, grid=crowded())(torch.zeros(2, 4, 5, 3, 3))
    with pytest.raises(ValueError, match=r"LayerNorm: x has shape \(2, 3, 8\); expected \(B, 4, \.\.\.\)"):
        LayerNorm(4)(torch.zeros(2, 3, 8))
    with pytest.raises(ValueError, match="one value per image and group of channels"):
        InstanceNorm(4)(torch.zeros(2, 4, 1, 1, 1))
