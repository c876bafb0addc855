"""Convolutions of volumes on a CPU: torch's own loop is avoided, and the price of both ways is known."""

import copy
import math

import pytest
import torch
from torch.nn import functional as F

import liespline as ls
from liespline.models.kernels import h_basis
from liespline.ops import choose
from liespline.ops.correlate import reference
from liespline.ops.correlate.hopper import tiles

SHAPES = [
    # batch, inputs, space, window
    (1, 56, (14, 14, 14), (3, 3, 3)),
    (1, 96, (14, 14, 12), (3, 3, 3)),
    (1, 105, (14, 14, 14), (3, 3, 3)),
    (1, 104, (14, 14, 30), (3, 3, 3)),
    (2, 8, (6, 6, 6), (3, 3, 3)),
    (1, 8, (6, 6, 6), (5, 5, 5)),
    (1, 8, (6, 6, 6), (1, 5, 5)),
    (1, 8, (6, 6, 6), (5, 5, 3)),
    (1, 8, (6, 6, 6), (5, 3, 5)),
    (1, 8, (6, 6, 6), (3, 5, 5)),
]


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")
@pytest.mark.parametrize(("batch", "inputs", "space", "window"), SHAPES)
def test_which_volumes_torch_keeps_to_itself(batch: int, inputs: int, space: tuple[int, ...], window: tuple[int, ...]):
    def backend(x: torch.Tensor) -> str:
        sizes = [1] * 3, [0] * 3, [1] * 3, False, [0] * 3, 1
        return str(torch._C._select_conv_backend(x, torch.empty(4, inputs, *window), None, *sizes))

    x = torch.empty(batch, inputs, *space)
    slow = reference.left_to_torch(batch, inputs, space, window)
    assert slow == ("Slow3d" in backend(x))
    assert "Mkldnn" in backend(torch.empty(2, inputs, *space))


@pytest.mark.parametrize("stride", [(1, 1, 1), (2, 1, 2)])
@pytest.mark.parametrize("inputs", [3, 130])
def test_an_empty_volume_beside_it_changes_nothing(inputs: int, stride: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, inputs, 14, 13, 5, requires_grad=True)
    weight = torch.randn(4, inputs, 3, 3, 3, requires_grad=True)
    found, right = reference.volumes(x, weight, stride, (1, 0, 1)), F.conv3d(x, weight, None, stride, (1, 0, 1))
    torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-4)
    direction = torch.randn_like(right)
    for one, wanted in zip(
        torch.autograd.grad(found, (x, weight), direction),
        torch.autograd.grad(right, (x, weight), direction),
        strict=True,
    ):
        torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-4)


def test_few_outputs_of_one_small_volume_are_not_computed_one_by_one() -> None:
    """A dozen times slower than the dense path: torch took its own loop for each of 24 elements."""
    grid = ls.uniform(ls.SO3(), 24)
    layer = ls.GConv(8, 8, 3, grid, h_basis=h_basis(grid, "local", 7), padding="same")
    x = torch.empty(1, 8, 24, 14, 14, 14)
    choice = choose.choose(x, layer.weight, layer.window.sizes, (1,) * 3, (1,) * 3, layer.plan)
    assert choice.whole or choice.group == 2


def test_a_line_of_few_channels_stays_dense_and_one_of_many_does_not() -> None:
    grid = ls.uniform(ls.Scale(1), 3, spacing=0.35)
    for channels, window, batch, side, whole in ((4, 5, 8, 64, True), (32, 9, 4, 256, False)):
        layer = ls.GConv(channels, channels, window, grid, padding="same")
        x = torch.empty(batch, channels, 3, side)
        choice = choose.choose(x, layer.weight, layer.window.sizes, (1,), layer.borders.before, layer.plan)
        assert choice.whole is whole


def test_the_kernel_for_slabs_takes_sixteen_outputs_alone() -> None:
    """With fewer it was wrong: `ops/correlate/hopper/slab_kernels.py` says why."""
    volume, window = (8, 12, 12), (5, 5, 5)
    assert tiles.slab(2, volume, window, 16, 16) is not None
    assert all(tiles.slab(2, volume, window, outputs, 16) is None for outputs in range(1, 16))
    assert all(tiles.slab(2, volume, window, 16, width) is None for width in (32, 64))
    assert tiles.slab(2, volume, (3, 3, 3), 16, 16) is None


@pytest.mark.parametrize("group", [ls.Scale(3), ls.Sphere()])
def test_strided_windows_as_large_as_a_volume_have_gradients(group: ls.Group) -> None:
    """torch 2.13 leaves them unset on a CPU, or crashes."""
    scales = ls.uniform(group, 6) if isinstance(group, ls.Sphere) else ls.uniform(group, 2, spacing=0.5 * math.log(2))
    basis = ls.SplineBasis(ls.disc(3, 3), scale=2.0)
    single = ls.Lift(1, 2, 7, scales, x_basis=basis, stride=2, padding=3)
    double = copy.deepcopy(single).double()
    x = torch.randn(2, 1, *((7, 7, 7) if isinstance(group, ls.Sphere) else (9, 9, 11)))
    junk = [torch.full((numbers,), 1e20) for numbers in (10**3, 10**4, 10**5) for _ in range(10)]
    del junk
    for layer, image in ((single, x), (double, x.double())):
        layer(image).square().sum().backward()
    difference = (single.weight.grad - double.weight.grad).abs().max()
    assert difference < 1e-5 * double.weight.grad.abs().max()
