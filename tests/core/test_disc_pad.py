"""Layers that look at a disc alone: the border by hand, constants, corners, turns, precision."""

import copy

import pytest
import torch
from torch import nn

import liespline as ls
import oracle
from liespline import functional, models
from liespline.functional import Padding

TURNS = ls.uniform(ls.SO2(), 8)
GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


@pytest.mark.parametrize("space", [(1,), (2,), (7,), (2, 2), (5, 5), (6, 6), (6, 9), (1, 4), (3, 3, 3), (4, 5, 6)])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 2), (1, 2)])
def test_the_border_by_hand(space: tuple[int, ...], before: int, after: int) -> None:
    torch.manual_seed(0)
    d = len(space)
    x = torch.randn(2, 3, *space, dtype=torch.float64)
    found = functional.disc_pad(x, Padding((before,) * d, (after,) * d))
    expected = torch.from_numpy(oracle.disc_pad(x.numpy(), [(before, after)] * d))
    assert torch.allclose(found, expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("make", [ls.GConv, ls.nn.SeparableGConv])
@pytest.mark.parametrize("n", [8, 9])
def test_a_constant_stays_constant(make: type[nn.Module], n: int) -> None:
    """So there is no edge at the border, which zeros would make, here as a planted fault."""
    torch.manual_seed(0)
    x = torch.randn(1, 2, 8, 1, 1, dtype=torch.float64).expand(1, 2, 8, n, n)
    for mode, edge in (("disc", False), ("zeros", True)):
        layer = make(2, 3, 5, TURNS, padding="same", padding_mode=mode).double()
        y = layer(x)
        assert (bool((y - y[..., :1, :1]).abs().max() > 1e-3)) is edge
        assert bool((y - y[..., :1, :1]).abs().max() > 1e-12) is edge


def test_inside_of_the_disc_half_precision_goes_through_to_the_bit() -> None:
    torch.manual_seed(0)
    x = 3 + torch.randn(2, 4, 8, 9, 9).bfloat16()
    found = functional.disc_pad(x, Padding((2, 2), (2, 2)))
    assert found.dtype == torch.bfloat16
    assert torch.equal(found[..., 4:9, 4:9], x[..., 2:7, 2:7])
    exact = functional.disc_pad(x.double(), Padding((2, 2), (2, 2)))
    assert (found.double() - exact).abs().max() < 3 * 2**-9 * float(x.abs().max())  # three roundings


def test_gradients() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: functional.disc_pad(x, Padding((1, 0), (2, 1))), x)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=GPU)])
def test_compiled_it_learns_the_same(device: str) -> None:
    """Gradients against float64 on the CPU; a GPU may round to TF32."""
    torch.manual_seed(0)
    options = {"padding": "same", "padding_mode": "disc"}
    net = nn.Sequential(ls.Lift(2, 4, 7, TURNS, **options), nn.ReLU(), ls.GConv(4, 3, 5, TURNS, **options))
    x = torch.rand(2, 2, 12, 15)
    exact = copy.deepcopy(net).double()
    exact(x.double()).square().mean().backward()
    net.to(device)
    torch.compile(net)(x.to(device)).square().mean().backward()
    for found, right in zip(net.parameters(), exact.parameters(), strict=True):
        tolerance = (2e-2 if device == "cuda" else 1e-4) * float(right.grad.abs().max())
        assert (found.grad.cpu().double() - right.grad).abs().max() <= tolerance


def test_no_layer_of_a_network_sees_a_frame() -> None:
    """A bright image of one colour has one value at every stage; with zeros, planted as a fault, the border shows."""
    torch.manual_seed(0)
    for mode, framed in (("disc", False), ("zeros", True)):
        net = models.resnet(3, 2, TURNS, widths=(4, 4, 6, 6), disc=True, features=True).double().eval()
        for layer in net.modules():
            if hasattr(layer, "padding_mode"):
                layer.padding_mode = mode
        for feature in net(torch.tensor([0.9, 0.6, 0.8], dtype=torch.float64).view(1, 3, 1, 1).expand(1, 3, 32, 32)):
            assert bool((feature - feature[..., :1, :1]).abs().max() > 1e-10 * feature.abs().max()) is framed
