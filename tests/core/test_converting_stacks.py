"""convert: transposed convolutions and layer norms, of which U-Nets and ConvNeXts of other libraries are made.

`make stacks` converts those of MONAI and timm themselves.
"""

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline.nn import ChannelNorm
from networks import CUBE, TURNS

TORCH = {2: (nn.Conv2d, nn.ConvTranspose2d), 3: (nn.Conv3d, nn.ConvTranspose3d)}


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of images, as in timm."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class UNet(nn.Module):
    """One size down and up, with a skip."""

    def __init__(self, d: int, up: dict[str, int]) -> None:
        super().__init__()
        conv, transposed = TORCH[d]
        self.first, self.down = conv(1, 3, 3, padding=1), conv(3, 4, 3, stride=2, padding=1)
        self.up, self.last = transposed(4, 3, **up), conv(6, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.first(x).relu()
        return self.last(torch.cat([skip, self.up(self.down(skip).relu())], 1))


@pytest.mark.parametrize(
    ("up", "window", "before"),
    [
        ({"kernel_size": 3, "stride": 2, "padding": 1, "output_padding": 1}, 5, False),  # MONAI's UNet
        ({"kernel_size": 2, "stride": 2}, 1, True),  # MONAI's DynUNet, nnU-Net
        ({"kernel_size": 4, "stride": 2, "padding": 1}, 5, False),
    ],
)
def test_transposed_convolutions_keep_sizes_and_quarter_turns(up: dict[str, int], window: int, before: bool) -> None:
    for grid, shape in ((TURNS, (10, 10)), (CUBE, (6, 6, 6))):
        d = len(shape)
        plain, net = UNet(d, up), ls.convert(UNet(d, up), grid).double().eval()
        x = torch.randn(2, 1, *shape)
        made = net[0].up
        (conv,) = (layer for layer in made.modules() if isinstance(layer, ls.GConv))
        assert (conv.kernel_size, isinstance(made[0], ls.GConv)) == ((window,) * d, before)
        assert net(x.double()).shape == plain(x).shape
        axes = (-2, -1)
        # The cube's 12 rotations hold half turns about its axes, not quarter turns.
        turn = 1 if d == 2 else 2
        found, turned = net(x.double()), net(x.double().rot90(turn, axes))
        assert torch.allclose(turned, found.rot90(turn, axes), atol=1e-9)


def test_a_window_of_one_sample_commutes_with_up_sampling() -> None:
    """So that it is taken where samples are fewer; its bias is no exception."""
    net = ls.convert(nn.Sequential(nn.Conv2d(1, 3, 3), nn.ConvTranspose2d(3, 2, 2, stride=2)), TURNS)[0].double()
    conv, finer = net[1]
    x = torch.randn(2, 3, 4, 5, 6).double()
    assert torch.allclose(finer(conv(x)), conv(finer(x)), atol=1e-12)


def test_layer_norms_over_channels_are_torch_s_at_every_position() -> None:
    norm = ChannelNorm(5, eps=1e-3).double()
    nn.init.normal_(norm.norm.weight), nn.init.normal_(norm.norm.bias)
    x = torch.randn(2, 5, 4, 3, 2).double()
    found = norm(x)
    for b, h, i, j in torch.cartesian_prod(*map(torch.arange, (2, 4, 3, 2))).tolist():
        values = x[b, :, h, i, j]
        normal = (values - values.mean()) / (values.var(correction=0) + 1e-3).sqrt()
        assert torch.allclose(found[b, :, h, i, j], normal * norm.norm.weight + norm.norm.bias)
    with pytest.raises(ValueError, match=r"ChannelNorm: x has shape \(2, 4, 3\); expected \(B, 5, ...\)"):
        norm(torch.zeros(2, 4, 3))


def test_convnext_is_converted() -> None:
    """A stem of 4×4 patches, depthwise windows of 7, a norm of channels behind the pooling that stays torch's."""
    block = (nn.Conv2d(4, 4, 7, padding=3, groups=4), LayerNorm2d(4, eps=1e-3), nn.Conv2d(4, 8, 1), nn.GELU())
    head = (nn.AdaptiveAvgPool2d(1), LayerNorm2d(6), nn.Flatten(), nn.Linear(6, 3))
    plain = nn.Sequential(nn.Conv2d(1, 4, 4, 4), *block, nn.Conv2d(8, 6, 2, 2), *head)
    net = ls.convert(plain, TURNS).double().eval()
    assert [type(layer) for layer in (net[2], net[7])] == [ChannelNorm, LayerNorm2d]
    assert net[2].norm.eps == 1e-3
    x = torch.randn(2, 1, 32, 32).double()
    assert net(x).shape == (2, 3)
    assert torch.allclose(net(x.rot90(1, (2, 3))), net(x), atol=1e-9)


def test_what_has_no_counterpart_is_said_together() -> None:
    plain = nn.Sequential(
        nn.ConvTranspose2d(1, 2, 2, stride=2),
        nn.Conv2d(2, 4, 3),
        nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1),
        nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1, output_padding=1, dilation=2),
        nn.ConvTranspose2d(4, 4, (2, 1), stride=(2, 1)),
        nn.LayerNorm(6),
        nn.LayerNorm((4, 6, 6)),
        nn.ConvTranspose3d(4, 4, 2, stride=2),
    )
    with pytest.raises(ValueError) as raised:
        ls.convert(plain, TURNS)
    found = {line.split(":")[0].strip(): line for line in str(raised.value).splitlines()[1:]}
    for name, why in {
        "0": "comes before the first convolution",
        "2": "does not make sizes 2 times as large",
        "3": "is dilated",
        "4": "has stride = (2, 1), which is not the same for all axes",
        "5": "normalises the last axes, which are space here",
        "6": "normalises the last axes",
        "7": "has 3 space axes",
    }.items():
        assert why in found[name]
    assert len(found) == 7
