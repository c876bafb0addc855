"""One convention of where samples lie: every size keeps its centre, going down, up and both."""

import copy
import warnings
from collections.abc import Iterator

import pytest
import torch
from scipy.interpolate import BSpline
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

import liespline as ls
from liespline.nn import Downsample, MaxPool, Upsample, arguments
from networks import TURNS

X64 = torch.float64
SIZES = (8, 9, 28, 29, 63, 64)


@pytest.fixture(autouse=True)
def _told_nothing() -> Iterator[None]:
    before = set(arguments._told)
    arguments._told.clear()
    yield
    arguments._told.clear()
    arguments._told.update(before)


def blob(size: int, centre: float, width: float) -> Tensor:
    return (-(torch.arange(size, dtype=X64) - centre).square() / (2 * width**2)).exp().view(1, 1, 1, size)


def centre_of(x: Tensor) -> float:
    """The centre of mass; the samples of every size lie symmetric about (size − 1)/2."""
    return float((x * torch.arange(x.shape[-1], dtype=X64)).sum() / x.sum())


@pytest.mark.parametrize("factor", [2, 3, 4, 5])
@pytest.mark.parametrize("size", SIZES)
def test_samples_are_read_about_the_images_centre(size: int, factor: int) -> None:
    """Against SciPy's splines at the places the convention names, in a plain loop over samples."""
    x = torch.randn(1, 1, 1, size, dtype=X64)
    number = -(-size // factor)
    found = Downsample(factor).double()(x)
    spline = BSpline.basis_element([-2, -1, 0, 1, 2], extrapolate=False)
    assert found.shape[-1] == number
    for j in range(number):
        place = (size - 1) / 2 + factor * (j - (number - 1) / 2)
        inside = [(y, float(spline((y - place) / factor))) for y in range(size) if abs(y - place) < 2 * factor]
        right = sum(weight * float(x[0, 0, 0, y]) for y, weight in inside) / sum(weight for _, weight in inside)
        assert float(found[0, 0, 0, j]) == pytest.approx(right, abs=1e-12)


def test_a_factor_per_axis_is_that_axis_alone() -> None:
    """(1, 2, 3) along three axes is each factor along its own, and up again to the same sizes."""
    x = torch.randn(2, 3, 4, 5, 8, 9, dtype=X64)
    found = Downsample((1, 2, 3)).double()(x)
    by_axis = x
    for axis, factor in ((4, 2), (5, 3)):
        line = by_axis.movedim(axis, -1)
        flat = line.reshape(-1, 1, 1, line.shape[-1])
        by_axis = Downsample(factor).double()(flat).reshape(*line.shape[:-1], -1).movedim(-1, axis)
    torch.testing.assert_close(found, by_axis, rtol=0, atol=1e-14)
    assert torch.equal(Downsample((2, 2, 2)).double()(x), Downsample(2).double()(x))
    up = Upsample((1, 2, 3))
    assert up(found, x.shape[3:]).shape == x.shape
    ones = Upsample(1)(found)
    assert torch.equal(ones, found)
    assert up(found).shape == (*x.shape[:3], 5, 8, 9)
    for make in (lambda: Downsample((1, 0)), lambda: Upsample((2, 1.5))):
        with pytest.raises(ValueError, match=r"factor = .*, must be a whole number"):
            make()
    with pytest.raises(ValueError, match=r"factor = \(1, 2\) has 2 numbers, must have 3"):
        Downsample((1, 2))(x.float())


@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("size", SIZES)
def test_down_then_up_returns_a_blob_to_its_place(size: int, factor: int) -> None:
    down, up = Downsample(factor).double(), Upsample(factor)
    width = 1.0 if factor == 2 else 1.5
    # Anywhere far enough from the border for the filter, and in the middle of images that are too small for that.
    room = 5 * width + 3 * factor
    places = [(size - 1) / 2, *(torch.linspace(room, size - 1 - room, 5).tolist() if size - 1 > 2 * room else [])]
    for place in places:
        x = blob(size, place, width)
        back = up(down(x), x.shape[3:])
        assert back.shape == x.shape
        assert abs(centre_of(back) - place) <= 1e-3


@pytest.mark.parametrize(
    ("make", "size", "off"),
    [
        (lambda: MaxPool(2), 9, "0.5"),
        (lambda: MaxPool(3, 2, 1), 28, "0.5"),
        (lambda: MaxPool(3), 11, "1"),
        (lambda: MaxPool(2), 10, None),
        (lambda: MaxPool(3, 2, 1), 29, None),
        (lambda: ls.GConv(3, 2, 5, TURNS, stride=2, padding=2), 28, "0.5"),
        (lambda: ls.GConv(3, 2, 5, TURNS, stride=2, padding=2), 29, None),
        (lambda: ls.GConv(3, 2, 4, TURNS, padding="same"), 11, "0.5"),
        (lambda: ls.GConv(3, 2, 4, TURNS, padding=1), 11, None),
    ],
)
@pytest.mark.filterwarnings("ignore:.*energy falls outside")
def test_what_cannot_be_centred_says_so_once(make, size: int, off: str | None) -> None:
    layer = make()
    x = torch.randn(1, 3, 4, size, size)
    if off is not None:
        with pytest.warns(UserWarning, match=f"lie {off} samples off the centre of {size} samples"):
            layer(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(x)
    same = (layer(_half_turn(x)) - _half_turn(layer(x))).abs().max() < 1e-5
    assert bool(same) == (off is None)


def _half_turn(x: Tensor) -> Tensor:
    return torch.rot90(x, 2, (-2, -1)).roll(2, 2)


def test_a_plain_network_is_told_nothing() -> None:
    one = ls.uniform(ls.SO2(), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ls.Lift(1, 2, 5, one, stride=2, padding=2)(torch.randn(1, 1, 28, 28))
        MaxPool(2)(torch.randn(1, 2, 1, 9, 9))


def test_what_a_layer_keeps_between_calls_serves_every_other() -> None:
    """Made in inference mode, in another dtype, for other sizes: each answer is that of a new layer."""
    down, up = Downsample(2), Upsample(2)
    with torch.inference_mode():
        up(down(torch.randn(1, 2, 4, 9, 8)), (9, 8))
    x = torch.randn(1, 2, 4, 9, 8, requires_grad=True)
    assert torch.func.vmap(lambda t: up(down(t), (9, 8)))(x[None]).shape == (1, *x.shape)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert down(mode.from_tensor(x.detach()[..., :6])).shape[-1] == 3
    up(down(x[..., :6]), (9, 6)).sum().backward()
    for size in (*range(4, 30), 8):
        for dtype in (torch.float32, torch.bfloat16):
            y = torch.randn(1, 2, 4, size, size + 1).to(dtype)
            assert torch.equal(down(y), Downsample(2)(y))
            assert torch.equal(up(down(y), (size, size + 1)), Upsample(2)(Downsample(2)(y), (size, size + 1)))
    assert max(len(down._made), len(up._made)) <= 16
    assert not copy.deepcopy(down).double()._made
