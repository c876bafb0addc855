"""convert: an ordinary network becomes the equivariant one of the same shape, its options mean what they did."""

import pytest
import torch
from torch import nn

import liespline as ls
from liespline.nn import Depthwise, Downsample, FieldDropout, MaxPool
from networks import TURNS
from plain_networks import ResNet18, every_kind


def test_resnet18_has_the_same_shapes_layer_by_layer() -> None:
    plain = ResNet18(4)
    net = ls.convert(plain, TURNS)
    seen: dict[str, list[tuple[int, ...]]] = {}

    def watch(module: nn.Module, key: str) -> None:
        for name in (
            "conv1",
            "maxpool",
            *(f"layers.{i}.{j}.{c}" for i in range(4) for j in (0, 1) for c in ("conv1", "bn2")),
        ):
            module.get_submodule(name).register_forward_hook(
                lambda m, i, out: seen.setdefault(key, []).append(tuple(out.shape))
            )

    watch(plain, "plain"), watch(net, "group")
    x = torch.randn(2, 3, 45, 64)
    assert net(x).shape == plain(x).shape
    assert [(*s[:2], 4, *s[2:]) for s in seen["plain"]] == seen["group"]
    kinds = [type(m) for m in net.modules() if isinstance(m, ls.Lift | ls.GConv)]
    assert kinds == [ls.Lift] + [ls.GConv] * 19
    assert isinstance(plain.conv1, nn.Conv2d)  # what was given stays
    assert not any(isinstance(m, nn.Conv2d | nn.BatchNorm2d | nn.MaxPool2d) for m in net.modules())


@pytest.mark.filterwarnings("ignore:.*isinstance.treespec, LeafSpec.:FutureWarning")
def test_resnet18_trains_and_exports() -> None:
    net = ls.convert(ResNet18(4, classes=2), TURNS)
    x, y = torch.randn(8, 3, 32, 32), torch.tensor([0, 1] * 4)
    x[1::2] = x[1::2] + x[1::2].roll(1, -1)  # textures of two kinds
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss = nn.functional.cross_entropy(net(x), y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    net.eval()
    plain = ls.export(net)
    with torch.no_grad():
        expected = net(x)
        assert (plain(x) - expected).abs().max() < 1e-4 * expected.abs().max()
        program = torch.export.export(plain, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},))
        assert (program.module()(x[:3]) - expected[:3]).abs().max() < 1e-4 * expected.abs().max()


def test_every_kind_of_layer() -> None:
    plain = every_kind(2)
    net = ls.convert(plain, TURNS)
    assert net[2] is net[6]  # what was one object stays one
    assert [m.p for m in net.modules() if isinstance(m, FieldDropout)] == [0.2]
    assert sum(isinstance(m, Downsample) for m in net.modules()) == 3
    assert [m.kernel_size for m in net.modules() if isinstance(m, Depthwise)] == [(5, 5)]
    assert [(m.kernel_size, m.stride) for m in net.modules() if isinstance(m, MaxPool)] == [(2, 1)]
    x = torch.randn(2, 2, 28, 28)
    assert net(x).shape == plain(x).shape == (2, 5)


@pytest.mark.parametrize("padding", ["valid", 0, "same", 2])
def test_a_layer_keeps_the_size_of_its_output_and_a_norm_its_constants(padding: str | int) -> None:
    plain = nn.Sequential(nn.Conv2d(2, 3, 3, padding=padding), nn.BatchNorm2d(3, eps=0.02, momentum=0.3), nn.ReLU())
    net = ls.convert(plain, TURNS)
    x = torch.randn(2, 2, 15, 17)
    assert net(x).shape == plain(x).shape
    (norm,) = (m for m in net.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm))
    assert (norm.eps, norm.momentum) == (0.02, 0.3)


def test_what_cannot_be_converted_is_one_list() -> None:
    plain = nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.ConvTranspose2d(2, 2, 2),
        nn.Conv2d(4, 4, 3, groups=2),
        nn.Sequential(nn.Conv2d(2, 2, 3, dilation=2), nn.Conv1d(2, 2, 3), nn.Conv2d(2, 2, 3, stride=(1, 2))),
        nn.AdaptiveAvgPool2d(7),
        nn.LayerNorm(7),
        nn.AvgPool2d(2, divisor_override=1),
    )
    with pytest.raises(ValueError) as raised:
        ls.convert(plain, TURNS)
    text = str(raised.value)
    parts = (
        "1: ConvT",
        "3.0: ",
        "dilated",
        "3.1: ",
        "acts on 2",
        "stride = (1, 2)",
        "4: Adaptive",
        "5: Layer",
        "divisor",
    )
    assert [part for part in parts if part not in text] == []
    assert text.count("\n") == 7
    small = ls.convert(nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.AvgPool2d(4)), TURNS)
    with pytest.raises(ValueError, match=r"space \(9, 3\), smaller than a window of 4"):
        small(torch.randn(1, 1, 9, 3))
    with pytest.raises(ValueError, match="it has no Conv2d"):
        ls.convert(nn.Sequential(nn.Linear(3, 3)), TURNS)
    with pytest.raises(ValueError, match="got Sequential and SO2"):
        ls.convert(nn.Sequential(), ls.SO2())  # type: ignore[arg-type]


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


def test_norms_of_one_image_keep_their_options() -> None:
    """In volumes too; before the first convolution and behind the projection they stay torch's."""
    grid = ls.uniform(ls.SO3(), 12)
    first, last = nn.InstanceNorm3d(1), nn.GroupNorm(2, 4)
    inside = nn.InstanceNorm3d(4, eps=1e-2, affine=True), nn.GroupNorm(2, 4, eps=1e-3, affine=False)
    conv, head = nn.Conv3d(1, 4, 3, padding=1), (nn.AdaptiveAvgPool3d(1), nn.Flatten(), last)
    net = ls.convert(nn.Sequential(first, conv, *inside, *head), grid)
    assert (type(net[0]), type(net[-1])) == (nn.InstanceNorm3d, nn.GroupNorm)
    found = [(norm.num_groups, norm.num_channels, norm.eps, norm.affine) for norm in net[2:4]]
    assert found == [(4, 4, 1e-2, True), (2, 4, 1e-3, False)]
    assert net[2].grid == net[3].grid == grid
    assert net(torch.randn(2, 1, 6, 6, 6)).shape == (2, 4)
    with pytest.raises(ValueError, match="keeps running statistics: take a batch norm"):
        ls.convert(nn.Sequential(conv, nn.InstanceNorm3d(4, track_running_stats=True)), grid)


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
