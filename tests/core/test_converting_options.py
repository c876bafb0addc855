"""convert keeps what the options of a layer mean: sizes of pooling as torch gives them, norms, borders."""

import pytest
import torch
from torch import nn

import liespline as ls

TURNS = ls.uniform(ls.SO2(), 4)


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", [nn.AvgPool2d, nn.MaxPool2d])
def test_pooling_keeps_the_sizes_of_torch_and_quarter_turns(kind: type[nn.Module], size: int, ceil_mode: bool) -> None:
    plain = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), kind(size, ceil_mode=ceil_mode))
    if kind is nn.MaxPool2d and ceil_mode:
        with pytest.raises(ValueError, match="rounds up"):
            ls.convert(plain, TURNS)
        return
    net = ls.convert(plain, TURNS)
    for n in range(size, 17):
        x = torch.randn(1, 1, n, n + 3)
        assert net(x).shape == plain(x).shape, (n, n + 3)
        square = torch.randn(1, 1, n, n)
        still, turned = net(square), net(torch.rot90(square, 1, (-2, -1)))
        assert (turned - torch.rot90(still, 1, (-2, -1))).abs().max() <= 1e-5, n


@pytest.mark.parametrize(
    ("group", "conv", "pool", "shape"),
    [(ls.Scale(1), nn.Conv1d, nn.AvgPool1d, (11,)), (ls.SO3(), nn.Conv3d, nn.AvgPool3d, (5, 6, 7))],
)
def test_signals_and_volumes_keep_their_sizes(
    group: ls.Group, conv: type[nn.Conv3d], pool: type[nn.AvgPool3d], shape: tuple[int, ...]
) -> None:
    grid = ls.uniform(group, 12) if isinstance(group, ls.SO3) else ls.uniform(group, 2, spacing=0.3)
    for between in (nn.ReLU(), pool(2), pool(2, ceil_mode=True)):
        plain = nn.Sequential(conv(1, 2, 3, padding=1), between, conv(2, 3, 1, stride=2))
        x = torch.randn(2, 1, *shape)
        net = ls.convert(plain, grid)
        assert net(x).shape == plain(x).shape
        assert isinstance(net[-1], ls.Project)


def test_norms_keep_their_options() -> None:
    given = [
        nn.BatchNorm2d(4, eps=1e-2, momentum=0.3, affine=False),
        nn.BatchNorm2d(4, momentum=None),
        nn.BatchNorm2d(4, track_running_stats=False),
    ]
    net = ls.convert(nn.Sequential(nn.Conv2d(1, 4, 3), *given), TURNS)
    found = [m for m in net.modules() if isinstance(m, ls.nn.BatchNorm)]
    for norm, plain in zip(found, given, strict=True):
        for option in ("num_features", "eps", "momentum", "affine", "track_running_stats"):
            assert getattr(norm, option) == getattr(plain, option), option
        assert norm.state_dict().keys() == plain.state_dict().keys()
    # By its effect: numbers far below the root of eps stay far below 1.
    small = 1e-3 * torch.randn(8, 4, 4, 5, 5)
    assert float(found[0](small).std()) == pytest.approx(1e-3 / (1e-2 + 1e-6) ** 0.5, rel=0.05)


@pytest.mark.parametrize(
    "second", [{}, {"groups": 3}, {"stride": 2}], ids=["GConv", "Depthwise", "with a stride"]
)  # the first becomes Lift
def test_circular_borders_stay_circular(second: dict[str, int]) -> None:
    """Without bias, a convolution around the torus makes a constant image of a constant one; with zeros it does not."""
    for mode, constant in (("circular", True), ("zeros", False)):
        options = {"padding": 1, "padding_mode": mode, "bias": False}
        plain = nn.Sequential(nn.Conv2d(1, 3, 3, **options), nn.Conv2d(3, 3, 3, **options, **second))
        for net in (plain, ls.convert(plain, TURNS)):
            out = net(torch.ones(1, 1, 12, 12)).detach().flatten(2)
            spread = float((out - out.mean(-1, keepdim=True)).abs().max() / out.abs().max())
            assert (spread < 1e-5) is constant, (mode, spread)
