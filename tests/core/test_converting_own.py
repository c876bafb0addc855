"""convert: layers of other libraries and of one's own stay where they are right, and are named where they are not."""

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from exported import change, settled

TURNS = ls.uniform(ls.SO2(), 4)


class DropPath(nn.Module):
    """A path that is left out for some images, in training."""

    def forward(self, x: Tensor) -> Tensor:
        kept = (torch.rand(len(x)) > 0.5).to(x.dtype)
        return x * kept.view(-1, *(1,) * (x.ndim - 1)) if self.training else x


class Squared(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.relu().square()


class MeanAndMax(nn.Module):
    """Both kinds of pooling, side by side, flat."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1)


class NormAct(nn.BatchNorm2d):
    """A norm that holds what follows it."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)
        self.drop, self.act = nn.Identity(), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.drop(super().forward(x)))


def test_trying_a_layer_draws_no_random_numbers() -> None:
    weights = []
    for act in (nn.ReLU(), Squared()):
        torch.manual_seed(1)
        net = ls.convert(nn.Sequential(nn.Conv2d(3, 4, 5), act, nn.Conv2d(4, 4, 5)), TURNS)
        weights.append(next(layer for layer in net.modules() if isinstance(layer, ls.GConv)).weight)
    assert torch.equal(*weights)


def test_layers_of_ones_own() -> None:
    """Layers that treat numbers alike stay, own pools come behind the projection, norms keep what follows."""
    plain = nn.Sequential(
        *(nn.Conv2d(3, 4, 5, padding=2), NormAct(4), nn.Conv2d(4, 4, 3, padding=1), Squared(), DropPath()),
        *(MeanAndMax(), nn.Linear(8, 5)),
    )
    net = ls.convert(plain, ls.uniform(ls.O2(), 8))
    assert isinstance(net[1][0], ls.nn.BatchNorm)
    assert isinstance(net[1][2], nn.ReLU)
    assert isinstance(net[5][0], ls.Project)
    x = torch.randn(4, 3, 20, 20)
    net = settled(net, torch.randn(8, 3, 20, 20))
    assert net(x).shape == plain(x).shape
    assert change(net, x) <= 1e-4
    assert change(net, x, lambda x: x.flip(-1)) <= 1e-4


class DropBlock(nn.Module):
    """Acts on images alone, and not on every number by itself."""

    def forward(self, x: Tensor) -> Tensor:
        _, _, height, width = x.shape
        return x * (torch.rand(height, width) > 0.1) if self.training else x


class Neighbours(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x.roll(1, -1)


class Scaled(nn.Module):
    """Weights beside those of its layers, in the shape of images."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.gamma = nn.Conv2d(4, 4, 1), nn.Parameter(torch.ones(4, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.gamma * self.conv(x)


class PaddedConv(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(nn.functional.pad(x, (0, 1, 0, 1)))


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (DropBlock(), "1: DropBlock() is unknown"),
        (Neighbours(), "1: Neighbours() is unknown"),
        (Scaled(), "1: Scaled has weights beside those of its layers"),
        (PaddedConv(4, 4, 3), "with a forward of its own"),
        (nn.Unfold(6), "1: Unfold"),
    ],
)
def test_layers_that_would_be_wrong_are_named(layer: nn.Module, why: str) -> None:
    with pytest.raises(ValueError) as raised:
        ls.convert(nn.Sequential(nn.Conv2d(3, 4, 3), layer), TURNS)
    assert why in str(raised.value)


def test_maps_grow_by_whole_factors_alone() -> None:
    for factor, right in ((2, True), (2.0, True), (1.5, False)):
        plain = nn.Sequential(nn.Conv2d(1, 2, 5, padding=2), nn.Upsample(scale_factor=factor, mode="bilinear"))
        if right:
            assert ls.convert(plain, TURNS)(torch.rand(1, 1, 8, 8)).shape == (1, 2, 16, 16)
        else:
            with pytest.raises(ValueError, match=r"Upsample\(scale_factor=1.5.* needs a whole scale_factor"):
                ls.convert(plain, TURNS)
