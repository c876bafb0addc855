"""The one measure of equivariance, by itself: what it is in plain loops, and what must not fool it."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.testing import assert_equivariant, changed_predictions, measure_equivariance, output_change

EIGHT = ls.uniform(ls.SO2(), 8)
QUARTER = torch.tensor([[math.pi / 2]], dtype=torch.float64)


def naive(outputs: np.ndarray, classes: bool, pairs: list[tuple[int, int]]) -> tuple[float, float]:
    """Mean and worst change, number by number."""
    copies, images, width = outputs.shape
    z = np.empty_like(outputs)
    for k in range(copies):
        for n in range(images):
            level = sum(outputs[k, n]) / width if classes else 0.0
            for c in range(width):
                z[k, n, c] = outputs[k, n, c] - level
    spread = 0.0
    for k in range(copies):
        for c in range(width):
            mean = sum(z[k, n, c] for n in range(images)) / images
            spread += sum((z[k, n, c] - mean) ** 2 for n in range(images)) / (copies * images)
    changes = [sum((z[i, n, c] - z[j, n, c]) ** 2 for n in range(images) for c in range(width)) for i, j in pairs]
    changes = [math.sqrt(change / images / spread) for change in changes]
    return math.sqrt(sum(change**2 for change in changes) / len(changes)), max(changes)


@pytest.mark.parametrize("classes", [True, False])
def test_the_change_of_answers_is_that_of_plain_loops(classes: bool) -> None:
    draw = np.random.default_rng(0)
    outputs = draw.normal(size=(4, 5, 3)) * np.array([1.0, 3.0, 0.2]) + draw.normal(size=(1, 5, 1))
    every = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    some = torch.zeros(4, 4, dtype=torch.bool)
    some[0, 2] = some[2, 0] = some[1, 3] = some[3, 1] = True
    for chosen, pairs in ((None, every), (some, [(0, 2), (1, 3)])):
        found = output_change(torch.from_numpy(outputs), classes=classes, pairs=chosen)
        assert (found.mean, found.worst) == pytest.approx(naive(outputs, classes, pairs), rel=1e-12)
    found = output_change(torch.from_numpy(outputs), classes=classes)
    i, j = found.pair
    alone = torch.zeros(4, 4, dtype=torch.bool)
    alone[i, j] = True
    assert output_change(torch.from_numpy(outputs), classes=classes, pairs=alone).mean == found.worst
    answers = outputs.argmax(2)
    changed = [answers[i, n] != answers[j, n] for i, j in every for n in range(5)]
    assert changed_predictions(torch.from_numpy(outputs)) == pytest.approx(np.mean(changed))


def test_a_single_output_is_not_centred_away() -> None:
    outputs = torch.randn(3, 50, 1, generator=torch.Generator().manual_seed(0))
    assert output_change(outputs, classes=True) == output_change(outputs)
    assert output_change(outputs).mean > 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_the_same_for_all_images_is_undefined(dtype: torch.dtype) -> None:
    rounding = 30 * (1 + torch.finfo(dtype).eps * torch.randint(-2, 3, (4, 6, 3)).to(dtype))
    by_angle = torch.arange(4, dtype=dtype).view(4, 1, 1).expand(4, 6, 3)
    for outputs in (torch.full((4, 6, 3), 30.0, dtype=dtype), rounding, by_angle, torch.full((4, 6, 3), math.nan)):
        found = output_change(outputs)
        assert math.isnan(found.mean)
        assert math.isnan(found.worst)
    assert math.isnan(output_change(torch.randn(4, 1, 3)).mean), "one image has no spread"
    assert math.isnan(output_change(torch.randn(1, 4, 3)).mean), "one copy has no pair"
    assert output_change(rounding + 30e-3 * torch.randn(4, 6, 3, dtype=dtype)).mean > 1


def plain(bias: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 8, 5, padding=2))
    nn.init.constant_(layers[-1].bias, bias)
    return nn.Sequential(*layers).double()


def test_a_bias_hides_nothing() -> None:
    """A last bias of 10 lowers the error of a plain network over the norm of its output by a hundred: not this one."""
    error = measure_equivariance(plain(), EIGHT, size=21).mean
    assert error > 0.4
    assert measure_equivariance(plain(10.0), EIGHT, size=21).mean == pytest.approx(error, rel=1e-9)
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(plain(10.0), EIGHT, size=21)


class Uneven(nn.Module):
    """Equivariant maps times a factor of the place."""

    def __init__(self, way: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.way, self.lift, self.project = way, ls.Lift(1, 4, 5, EIGHT, padding=2), ls.Project("max", EIGHT)

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.lift(x))
        place = torch.linspace(-1, 1, y.shape[-1], dtype=y.dtype)
        if self.way == "ramp":
            return y * (1 + 2.5 * place.unsqueeze(-1))
        return y * torch.exp(-2 * (place.unsqueeze(-1).square() + place.square())) if self.way == "radial" else y


def test_what_depends_on_the_place_is_found() -> None:
    """A ramp, which the sample at the centre does not feel, and a factor that turns with the image."""
    even, ramp, radial = (measure_equivariance(Uneven(way).double(), EIGHT, size=21) for way in ("", "ramp", "radial"))
    assert max(even.mean, even.worst) < 0.03
    assert even.translated.whole < 1e-12
    assert even.translated.half < 0.02
    assert ramp.mean > 0.5
    assert radial.mean < 0.03
    assert radial.translated.whole > 0.1
    assert_equivariant(Uneven("").double(), EIGHT, size=21, tolerance=0.1)
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(Uneven("ramp").double(), EIGHT, size=21)
    with pytest.raises(AssertionError, match="under a translation by a sample"):
        assert_equivariant(Uneven("radial").double(), EIGHT, size=21, tolerance=0.1)


@pytest.mark.parametrize("zero", ["last layer", "answers", "half precision"])
def test_a_constant_network_is_undefined_and_refused(zero: str) -> None:
    net = plain(10.0)
    nn.init.zeros_(net[-1].weight)
    if zero == "answers":
        net = nn.Sequential(net, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    dtype = torch.bfloat16 if zero == "half precision" else None
    found = measure_equivariance(net, EIGHT, size=21, dtype=dtype)
    assert math.isnan(found.mean)
    assert math.isnan(found.worst)
    with pytest.raises(AssertionError, match="the same for all images, of which equivariance is undefined"):
        assert_equivariant(net, EIGHT, size=21, dtype=dtype)


def test_translations_are_those_of_the_map() -> None:
    """Of networks that keep every second or third sample, by two or three samples of the image: exact."""
    for halving, size in ((ls.nn.Downsample(2), 41), (ls.nn.Downsample(3), 61), (ls.nn.MaxPool(2), 42)):
        torch.manual_seed(0)
        net = nn.Sequential(ls.Lift(1, 3, 5, EIGHT, padding=2), nn.ReLU(), halving).double()
        found = measure_equivariance(net, EIGHT, size=size, elements=EIGHT.elements[:2], blur=3.0, images=2)
        assert found.translated.whole < 1e-10, halving
        assert 1e-4 < found.translated.half < 0.05, halving


class Kept(nn.Module):
    """A network that remembers what it was shown and what it gave."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net, self.seen = net, []

    def forward(self, x: Tensor) -> Tensor:
        y = self.net(x)
        self.seen.append((x.numpy().copy(), y.numpy().copy()))
        return y


def test_the_error_of_maps_is_that_of_numpy() -> None:
    """A quarter turn, from what the network was shown: the middle half, about the means of the channels."""
    kept = Kept(plain(3.0))
    found = measure_equivariance(kept, EIGHT, size=20, elements=QUARTER, images=3)
    (still, out), (turned, actual) = kept.seen[:2]
    assert np.allclose(turned, np.rot90(still, 1, (-2, -1)), atol=1e-12)
    expected, half = np.rot90(out, 1, (-2, -1)), (20 - 1) / 4
    errors, values = 0.0, [[] for _ in range(8)]
    for row in range(20):
        for column in range(20):
            if math.hypot(row - 9.5, column - 9.5) <= half:
                for channel in range(8):
                    errors += ((actual - expected)[:, channel, row, column] ** 2).sum()
                    values[channel].extend(expected[:, channel, row, column])
    known = math.sqrt(errors / sum(np.var(one) * len(one) for one in values))
    assert (found.mean, found.worst) == pytest.approx((known, known), rel=1e-9)
    assert found.exact == found.mean, "nothing was interpolated"


def test_the_worst_element_is_beside_the_mean() -> None:
    """A lift that sees nothing at one orientation is worst where that one is asked for."""
    lift = ls.Lift(1, 4, 5, EIGHT, dtype=torch.float64)
    lift.x_samples[3] = 0
    each = [measure_equivariance(lift, EIGHT, size=13, elements=h[None]).mean for h in EIGHT.elements]
    found = measure_equivariance(lift, EIGHT, size=13, elements=EIGHT.elements)
    assert each[0] < 1e-12
    assert found.worst > 1.05 * found.mean > 0.1
    assert torch.equal(found.element, EIGHT.elements[int(np.argmax(each))])
    answers = nn.Sequential(lift, nn.ReLU(), ls.Project("max", EIGHT), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    worst = measure_equivariance(answers, EIGHT, size=13, elements=EIGHT.elements)
    pair = torch.stack([torch.zeros_like(worst.element), worst.element])
    assert measure_equivariance(answers, EIGHT, size=13, elements=pair).mean > 0.5 * worst.worst


def test_answers_are_compared_over_all_pairs_of_copies() -> None:
    """By the same function, from what the network gave; exact elements are told from others."""
    kept = Kept(nn.Sequential(plain(1.0), nn.AdaptiveAvgPool2d(1), nn.Flatten()))
    found = measure_equivariance(kept, EIGHT, size=15, elements=EIGHT.elements[1:5])
    copies = torch.stack([torch.from_numpy(out) for _, out in kept.seen])
    assert len(copies) == 5, "the images themselves and four copies"
    assert (found.mean, found.worst) == pytest.approx(output_change(copies)[:2], rel=1e-12)
    assert found.exact == pytest.approx(output_change(copies[[0, 2, 4]]).mean, rel=0.1)


def test_the_dtype_is_what_is_computed_in() -> None:
    net = nn.Sequential(ls.Lift(1, 3, 5, EIGHT, padding=2), nn.ReLU(), ls.Project("max", EIGHT))
    own, exact = (measure_equivariance(net, EIGHT, size=15, dtype=dtype).exact for dtype in (None, torch.float64))
    assert exact < 1e-12 < 1e-9 < own < 1e-5
    wide, narrow = (measure_equivariance(net, EIGHT, size=15, dtype=dtype).mean for dtype in (None, torch.bfloat16))
    assert 1e-4 < abs(narrow / wide - 1) < 0.5
    assert net[0].weight.dtype == torch.float32


def test_interpolating_maps_alone_is_told() -> None:
    """Rough maps cannot be turned: what that costs stands beside the error, and is none where samples meet samples."""
    net = ls.Lift(1, 3, 5, EIGHT, padding=2, dtype=torch.float64)
    smooth, rough = (measure_equivariance(net, EIGHT, size=21, blur=blur) for blur in (3.0, 0.5))
    assert smooth.floor < 2e-3 < 0.02 < rough.floor
    assert measure_equivariance(net, EIGHT, size=21, blur=0.5, elements=QUARTER).floor < 1e-12
