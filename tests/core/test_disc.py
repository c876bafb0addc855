"""Layers and means that look at a disc alone: by hand, constants, textures, precision; its symmetries are elsewhere."""

import math

import pytest
import torch
from scipy import ndimage
from torch import nn

import liespline as ls
import oracle
from exported import settled
from liespline import functional, models
from liespline.functional import Padding
from liespline.models.kit import DiscMean
from networks import SO2

X64 = torch.float64


@pytest.mark.parametrize("space", [(1,), (2,), (7,), (2, 2), (5, 5), (6, 6), (6, 9), (1, 4), (3, 3, 3), (4, 5, 6)])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 2), (1, 2)])
def test_the_border_by_hand(space: tuple[int, ...], before: int, after: int) -> None:
    d = len(space)
    x = torch.randn(2, 3, *space, dtype=X64)
    found = functional.disc_pad(x, Padding((before,) * d, (after,) * d))
    expected = torch.from_numpy(oracle.disc_pad(x.numpy(), [(before, after)] * d))
    assert torch.allclose(found, expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("space", [(6,), (5, 5), (6, 9), (1, 1), (4, 5, 6)])
def test_weights_of_the_mean_by_hand(space: tuple[int, ...]) -> None:
    """cos²(πr/2R) with R half a sample beyond the last one of the shortest side, one sample after the other."""
    x = torch.randn(2, 3, *space, dtype=X64)
    total, weights = torch.zeros(2, 3, dtype=X64), 0.0
    largest = (min(space) + 1) / 2
    for index in torch.cartesian_prod(*(torch.arange(n) for n in space)).reshape(-1, len(space)).tolist():
        radius = math.dist(index, [(n - 1) / 2 for n in space])
        weight = math.cos(math.pi / 2 * radius / largest) ** 2 if radius < largest else 0.0
        total, weights = total + weight * x[(..., *index)], weights + weight
    found = DiscMean()(x)
    assert found.shape == (2, 3, *(1,) * len(space))
    assert torch.allclose(found.flatten(1), total / weights, atol=1e-6, rtol=0)  # the weights are float32


@pytest.mark.parametrize("make", [ls.GConv, ls.nn.SeparableGConv])
@pytest.mark.parametrize("n", [8, 9])
def test_a_constant_stays_constant(make: type[nn.Module], n: int) -> None:
    """So there is no edge at the border, which zeros would make, here as a planted fault."""
    x = torch.randn(1, 2, 8, 1, 1, dtype=X64).expand(1, 2, 8, n, n)
    for mode, edge in (("disc", False), ("zeros", True)):
        y = make(2, 3, 5, SO2, padding="same", padding_mode=mode).double()(x)
        assert (bool((y - y[..., :1, :1]).abs().max() > 1e-3)) is edge
        assert bool((y - y[..., :1, :1]).abs().max() > 1e-12) is edge


def test_no_layer_of_a_network_sees_a_frame() -> None:
    """A bright image of one colour has one value at every stage; with zeros, planted as a fault, the border shows."""
    for mode, framed in (("disc", False), ("zeros", True)):
        net = models.resnet(3, 2, SO2, widths=(4, 4, 6, 6), disc=True, features=True).double().eval()
        for layer in net.modules():
            if hasattr(layer, "padding_mode"):
                layer.padding_mode = mode
        for feature in net(torch.tensor([0.9, 0.6, 0.8], dtype=X64).view(1, 3, 1, 1).expand(1, 3, 32, 32)):
            assert bool((feature - feature[..., :1, :1]).abs().max() > 1e-10 * feature.abs().max()) is framed


@pytest.mark.parametrize("name", ["classifier", "resnet"])
def test_texture_that_fills_an_image_rotates_without_a_change(name: str) -> None:
    """A smooth texture, larger than the image and rotated by SciPy: a square mean, planted as a fault, sees corners."""
    generator = torch.Generator().manual_seed(0)
    texture = ndimage.gaussian_filter(torch.randn(8, 2, 160, 160, generator=generator).numpy(), (0, 0, 2.5, 2.5))
    texture = texture / texture.std()

    def middle(angle: float) -> torch.Tensor:
        rotated = ndimage.rotate(texture, angle, (2, 3), reshape=False, order=3)
        return torch.from_numpy(rotated[:, :, 44:116, 44:116].copy())

    changes = {}
    for disc in (False, True):
        torch.manual_seed(1)
        net = getattr(models, name)(2, 12, SO2, widths=(4, 4, 8, 8), dropout=0.0, disc=disc)
        net = settled(net, middle(0))
        with torch.no_grad():
            upright = net(middle(0))
            spread = (upright - upright.mean(0)).norm()
            changes[disc] = max(float((net(middle(angle)) - upright).norm() / spread) for angle in (15, 30, 45))
    assert changes[True] < 0.5 * changes[False]
    assert changes[True] < 0.15


def test_inside_of_the_disc_half_precision_goes_through_to_the_bit() -> None:
    x = 3 + torch.randn(2, 4, 8, 9, 9).bfloat16()
    found = functional.disc_pad(x, Padding((2, 2), (2, 2)))
    assert found.dtype == torch.bfloat16
    assert torch.equal(found[..., 4:9, 4:9], x[..., 2:7, 2:7])
    exact = functional.disc_pad(x.double(), Padding((2, 2), (2, 2)))
    assert (found.double() - exact).abs().max() < 3 * 2**-9 * float(x.abs().max())  # three roundings


def test_gradients() -> None:
    x = torch.randn(1, 2, 5, 6, dtype=X64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: functional.disc_pad(x, Padding((1, 0), (2, 1))), x)
