"""Trigonometric interpolation along H: by hand, harmonics, translations; activations and maxima on finer grids."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import nn

import liespline as ls
from exported import change, quarter_turn, settled
from liespline import functional, models
from liespline.nn import Oversampled

X64 = torch.float64
ROTATIONS = ls.uniform(ls.SO2(), 8)
GRIDS = {
    "SO2": ROTATIONS,
    "SO2, odd": ls.uniform(ls.SO2(), 7),
    "O2": ls.uniform(ls.O2(), 12),
    "rotations and scales": ls.uniform(ls.Product(ls.SO2(), ls.Scale(2)), (6, 3), spacing=(None, 0.4)),
    "scales and rotations": ls.uniform(ls.Product(ls.Scale(2), ls.SO2()), (2, 5), spacing=(0.4, None)),
}
every_grid = pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)


@pytest.mark.parametrize(("n", "times"), [(8, 2), (7, 3), (6, 4), (2, 2)])
def test_harmonics_are_read_between_the_angles(n: int, times: int) -> None:
    """Those below n/2, and the cosine at n/2, are their own values; one above, planted, is taken for another."""
    coarse, fine = (torch.arange(m, dtype=X64) * 2 * math.pi / m for m in (n, times * n))
    matrix = functional.interpolation(ls.uniform(ls.SO2(), n), times)
    for k in range(n // 2 + 1):
        assert (matrix @ torch.cos(k * coarse) - torch.cos(k * fine)).abs().max() < 1e-12
        assert (matrix @ torch.sin(k * coarse) - torch.sin(k * fine)).abs().max() < 1e-12 or 2 * k == n
    k = n // 2 + 1
    assert (matrix @ torch.cos(k * coarse) - torch.cos(k * fine)).abs().max() > 0.1


@every_grid
def test_interpolation_commutes_with_translations_of_the_grid(grid: ls.Grid) -> None:
    """h·H, whose elements are those of H in another order: an oversampled activation and a maximum move with it."""
    group, x = grid.group, torch.randn(2, 3, len(grid), 4, 5, dtype=X64)
    layer, largest = Oversampled(nn.SiLU(), grid).double(), ls.Project("max", grid, interpolate=4).double()
    tried = 0
    for h in grid.elements:
        distance = group.offset(group.product(h, grid.elements).unsqueeze(1), grid.elements).norm(dim=-1)
        if (distance.amin(1) < 1e-6).all():  # not of scales, which end
            order, tried = distance.argmin(1), tried + 1
            assert torch.allclose(layer(x[:, :, order]), layer(x)[:, :, order], atol=1e-12)
            assert torch.allclose(largest(x[:, :, order]), largest(x), atol=1e-12)
    assert tried >= len(grid) / 3


@every_grid
def test_without_an_activation_nothing_changes(grid: ls.Grid) -> None:
    x = torch.randn(2, 3, len(grid), 4, dtype=X64)
    assert torch.allclose(Oversampled(nn.Identity(), grid, 3).double()(x), x, atol=1e-12)


def test_by_hand_in_every_order_of_memory() -> None:
    matrix = torch.randn(5, 8, dtype=X64)
    for shape in ((2, 3, 8), (2, 3, 8, 4), (2, 3, 8, 4, 5), (2, 3, 8, 3, 4, 2)):
        plain = torch.randn(shape, dtype=X64)
        right = torch.stack([sum(matrix[i, j] * plain[:, :, j] for j in range(8)) for i in range(5)], 2)
        last = list(range(3, len(shape)))
        orders = [list(range(len(shape))), [0, *last, 2, 1], [0, 2, *last, 1]]
        for order in orders:
            back = [order.index(axis) for axis in range(len(shape))]
            x = plain.permute(order).contiguous().permute(back)
            assert torch.allclose(functional.over_h(matrix, x), right, atol=1e-12)


def test_between_the_angles_an_oversampled_activation_errs_less() -> None:
    """A smooth function on H, shifted by a fraction of a step: against the activation at the shifted places."""
    fine = torch.arange(8, dtype=X64) * math.pi / 4
    errors = {}
    for name, layer in {"plain": nn.SiLU(), "finer": Oversampled(nn.SiLU(), ROTATIONS).double()}.items():
        found = []
        for step in (0.0, 0.1, 0.2, 0.3):
            a = fine + step
            x = 2 * torch.cos(a) + 1.5 * torch.sin(2 * a) + torch.cos(3 * a)
            out = torch.fft.rfft(layer(x.view(1, 1, 8)).flatten())
            found.append(out[1:4] * torch.exp(-1j * torch.arange(1, 4) * step))  # harmonics, shifted back
        errors[name] = float((torch.stack(found) - found[0]).norm() / found[0].norm())
    assert errors["finer"] < 0.3 * errors["plain"]


def test_a_smooth_network_changes_half_as_much_between_the_angles() -> None:
    """Untrained, of a texture that fills the image, rotated by half a step of the grid with SciPy."""
    changes: dict[bool, list[float]] = {False: [], True: []}
    for seed in range(3):
        texture = ndimage.gaussian_filter(np.random.default_rng(seed).normal(size=(8, 2, 160, 160)), (0, 0, 2.5, 2.5))
        rotated = ndimage.rotate(texture, 22.5, (2, 3), reshape=False)
        images = [torch.from_numpy(x[:, :, 44:116, 44:116] / texture.std()).float() for x in (texture, rotated)]
        for smooth, found in changes.items():
            torch.manual_seed(seed)
            net = models.classifier(2, 12, ROTATIONS, widths=(4, 4, 8, 8), dropout=0.0, disc=True, smooth=smooth)
            with torch.no_grad():
                upright, other = map(settled(net, images[0]), images)
            found.append(float((other - upright).norm() / (upright - upright.mean(0)).norm()))
    assert sum(changes[True]) < 0.75 * sum(changes[False])


def test_the_maximum_lies_between_the_angles() -> None:
    """Of a cosine, whatever its phase: its size to a hundredth, where the eight angles miss up to 8 %."""
    phases = torch.linspace(0, math.pi / 4, 9, dtype=X64)
    x = torch.cos(torch.arange(8, dtype=X64) * math.pi / 4 - phases.unsqueeze(1)).unsqueeze(1)
    finer, plain = (ls.Project("max", ROTATIONS, interpolate=n).double()(x) for n in (4, 1))
    assert (finer - 1).abs().max() < 0.005
    assert (plain - 1).abs().max() > 0.07


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: functional.interpolation(ls.uniform(ls.SO3(), 24), 2), r"SO3\(\) has 3"),
        (lambda: Oversampled(nn.SiLU(), ls.uniform(ls.Scale(2), 2, spacing=0.4)), "has none"),
        (lambda: ls.Project("max", ls.local(ls.SO2(), 3, 0.2), interpolate=4), "rotations in equal steps"),
        (lambda: ls.Project("mean", ROTATIONS, interpolate=4), 'interpolate = 4, only "max" depends on it'),
        (lambda: ls.Project("max", ROTATIONS, interpolate=0), "interpolate = 0, must be a whole number"),
        (lambda: models.classifier(1, 2, ls.uniform(ls.SO3(), 12), smooth=True), r"SO3\(\) has 3"),
        (lambda: models.unet(1, 2, ROTATIONS, activation="tanh"), "activation = 'tanh', must be one of relu, silu"),
        (lambda: ls.nn.NormAct(3, "swish"), "NormAct: activation = 'swish', must be one of relu, silu, gelu"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(make, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize("model", ["classifier", "resnet"])
def test_smooth_networks_keep_quarter_turns_and_take_parameters_of_others(model: str) -> None:
    smooth, rough = (getattr(models, model)(1, 3, ROTATIONS, widths=(3, 4, 5), smooth=s) for s in (True, False))
    smooth.load_state_dict(rough.state_dict())
    net = settled(smooth, torch.randn(8, 1, 28, 28)).double()
    assert change(net, torch.randn(2, 1, 29, 29, dtype=X64), quarter_turn) <= 1e-10
    plain = getattr(models, model)(1, 3, ls.uniform(ls.Trivial(2), 1), widths=(3, 4), smooth=True)
    assert any(isinstance(m, nn.SiLU) for m in plain.modules())
    assert not any(isinstance(m, Oversampled) for m in plain.modules())
