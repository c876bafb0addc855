"""What `equivariance_error` measures, that it leaves networks alone, and what `assert_equivariant` says."""

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import nn

import liespline as ls
from liespline.testing import assert_equivariant, equivariance_error
from liespline.testing.measure import compared, relative
from liespline.testing.probe import between

FOUR = ls.uniform(ls.SO2(), 4)


def invariant(grid: ls.Grid) -> nn.Module:
    """Exact for the elements of the grid, and off between them."""
    torch.manual_seed(0)
    lift = ls.Lift(1, 3, 5, grid, dtype=torch.float64)
    return nn.Sequential(lift, nn.ReLU(), ls.Project("mean", grid).double())


def test_it_measures_between_the_elements_too() -> None:
    net = invariant(FOUR)
    outputs = nn.Sequential(net, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    assert equivariance_error(outputs, FOUR, size=9, elements=FOUR.elements) < 1e-12
    halfway = torch.tensor([[math.pi / 4]], dtype=torch.float64)
    there = equivariance_error(net, FOUR, size=9, elements=halfway)
    assert equivariance_error(net, FOUR, size=9, elements=FOUR.elements) < 1e-12
    assert there > 1e-3
    # Half of the elements are exact, the others as bad as this one, by the symmetry of the square.
    assert equivariance_error(net, FOUR, size=9) == pytest.approx(there / math.sqrt(2), rel=0.05)


def test_feature_maps_are_compared_by_their_mean_over_rotations_between_the_elements() -> None:
    lift, halfway = ls.Lift(1, 3, 5, FOUR, dtype=torch.float64), between(FOUR)
    net = nn.Sequential(lift, nn.ReLU())
    projected = nn.Sequential(net, ls.Project("mean", FOUR).double())
    of_map, of_mean = (equivariance_error(one, FOUR, size=9, elements=halfway) for one in (net, projected))
    assert of_map == pytest.approx(of_mean, rel=1e-9)


def test_half_way_elements_are_half_way() -> None:
    three = ls.uniform(ls.SO2(), 3)
    apart = ls.SO2().offset(between(three).unsqueeze(1), three.elements).abs().squeeze(-1)
    assert apart.sort(1).values[:, :2].flatten().tolist() == pytest.approx([math.pi / 3] * 6)
    scales = ls.uniform(ls.Scale(2), 3, spacing=0.4)
    assert between(scales).log().squeeze(1).tolist() == pytest.approx([0.2, 0.2, 0.6])
    rotations = ls.uniform(ls.SO3(), 24)
    nearest = ls.SO3().offset(between(rotations).unsqueeze(1), rotations.elements).norm(dim=-1).amin(1)
    assert nearest.tolist() == pytest.approx([rotations.spacing / 2] * 24)
    assert len(between(ls.uniform(ls.Trivial(2), 1))) == 0


def test_a_network_in_training_is_left_as_it_was() -> None:
    net = nn.Sequential(ls.Lift(1, 3, 5, FOUR), ls.nn.NormReLU(3), ls.GConv(3, 2, 3, FOUR, padding=1))
    net[2].eval()  # a part of it in a mode of its own
    before = copy.deepcopy(net.state_dict())
    equivariance_error(net, FOUR, size=9)
    for key, value in net.state_dict().items():
        assert torch.equal(value, before[key]), key
    assert [part.training for part in net] == [True, True, False]

    class Refusing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no")

    refusing = Refusing()
    with pytest.raises(RuntimeError):
        equivariance_error(refusing, FOUR, size=9)
    assert refusing.training


def test_an_assertion_for_tests() -> None:
    assert_equivariant(invariant(ls.uniform(ls.SO2(), 12)), FOUR, size=9, tolerance=0.01)
    planted = invariant(FOUR)
    planted[0].x_samples[1] = 0  # an element that sees nothing
    assert equivariance_error(planted[0], FOUR, size=9) > 0.1
    said = r"relative error 0\.\d+ where samples meet samples, above the tolerance 0\.01; largest at h = \["
    with pytest.raises(AssertionError, match=said):
        assert_equivariant(planted, FOUR, size=9)
    with torch.no_grad():
        planted[0].weight.fill_(math.nan)
    with pytest.raises(AssertionError, match="relative error nan"):
        assert_equivariant(planted, FOUR, size=9)


@pytest.mark.parametrize("seed", range(2))
def test_the_usual_tolerance_tells_ready_networks_from_plain_ones(seed: int) -> None:
    torch.manual_seed(seed)
    eight = ls.uniform(ls.SO2(), 8)
    assert_equivariant(ls.models.classifier(1, 10, eight, parameters=20_000), eight, size=28)
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(ls.models.classifier(1, 10, ls.uniform(ls.Trivial(2), 1), parameters=20_000), eight, size=28)


def test_a_centre_that_is_half_a_sample_off_is_found() -> None:
    """Every second sample of an even number: on the whole as good as others, but quarter turns are no longer exact."""

    class Skipping(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x[..., ::2, ::2]

    def net(halving: nn.Module) -> nn.Module:
        torch.manual_seed(0)
        eight = ls.uniform(ls.SO2(), 8)
        first, second = ls.Lift(1, 8, 5, eight, padding=2), ls.GConv(8, 8, 5, eight, padding=2)
        layers = (first, nn.ReLU(), halving, second, nn.ReLU(), ls.Project("max", eight))
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())

    eight = ls.uniform(ls.SO2(), 8)
    centred = equivariance_error(net(ls.nn.Downsample(2)), eight, size=28)
    assert_equivariant(net(ls.nn.Downsample(2)), eight, size=28)
    assert equivariance_error(net(Skipping()), eight, size=28) < 1.2 * centred
    with pytest.raises(AssertionError, match="where samples meet samples"):
        assert_equivariant(net(Skipping()), eight, size=28)


@pytest.mark.parametrize("measure", [equivariance_error, assert_equivariant])
def test_nothing_to_compare_is_not_equivariant(measure: Callable[..., object]) -> None:
    scales = ls.uniform(ls.Scale(2), 2, spacing=0.4)
    lift = ls.Lift(1, 2, 5, scales)
    with pytest.raises(ValueError, match=r"nothing to compare; no product of these elements lies on Grid\(Scale"):
        measure(lift, scales, size=9, elements=torch.tensor([[3.3]]))
    with pytest.raises(ValueError, match=r"shape \(8, 2, 2, 4, 4\), 2 elements on axis 2; Grid\(Scale.* differs"):
        measure(lift, ls.uniform(ls.Scale(2), 3, spacing=0.3), size=8)
    assert math.isnan(relative([]))
    assert math.isnan(relative([compared(torch.ones(1, 2, 9), torch.ones(1, 2, 9))])), "the same everywhere"


def test_features_on_the_group_alone_have_one_sample() -> None:
    """(B, C, N_h), the mean over space: its elements change places as those of a map do."""

    class Pooled(nn.Module):
        def __init__(self, order: list[int]) -> None:
            super().__init__()
            self.order = order

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mean((-2, -1))[:, :, self.order]

    torch.manual_seed(0)
    lift = ls.Lift(1, 3, 5, FOUR, dtype=torch.float64)
    right, wrong = (nn.Sequential(lift, nn.ReLU(), Pooled(order)) for order in ([0, 1, 2, 3], [1, 0, 2, 3]))
    assert equivariance_error(right, FOUR, size=9, elements=FOUR.elements) < 1e-12
    assert equivariance_error(wrong, FOUR, size=9, elements=FOUR.elements) > 0.1


def test_answers_to_scaled_copies_are_compared_with_those_to_the_images() -> None:
    """A single element besides the identity makes one pair, however near to it that is."""
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Conv2d(1, 4, 5), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    scales = ls.uniform(ls.Scale(2), 3, spacing=0.3)
    assert equivariance_error(plain, scales, size=12, elements=torch.tensor([[1.2]])) > 0
