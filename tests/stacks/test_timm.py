"""timm's own functions on `lie_resnet_*`, and what a plain decoder does to equivariance."""

import pytest
import segmentation_models_pytorch as smp
import timm
import torch
from timm.optim import param_groups_layer_decay

import liespline as ls
import liespline.integrations.timm

NAMES = ["lie_resnet_so2_8", "lie_resnet_o2_16"]
WIDTHS = (4, 6, 8, 6, 12)


def settled(net: torch.nn.Module, side: int = 96) -> torch.nn.Module:
    """With running statistics of what comes in."""
    with torch.no_grad():
        for _ in range(5):
            net.train()(torch.rand(2, 3, side, side))
    return net.eval()


@pytest.mark.parametrize("name", NAMES)
def test_a_classifier_is_created_trained_and_given_a_new_head(name: str) -> None:
    net = timm.create_model(name, num_classes=5, widths=WIDTHS, drop_rate=0.1)
    x = torch.rand(2, 3, 64, 64)
    loss = net(x).square().mean()
    loss.backward()
    assert all(parameter.grad is not None for parameter in net.parameters())
    net.eval()
    with torch.no_grad():
        last, levels = net.forward_intermediates(x)
        torch.testing.assert_close(last, levels[-1])
        torch.testing.assert_close(net.forward_head(last), net(x))
        assert net.forward_head(last, pre_logits=True).shape == (2, WIDTHS[-1])
        net.reset_classifier(7)
        assert net(x).shape == (2, 7)
        net.reset_classifier(0)
        assert net(x).shape == (2, net.num_features)


@pytest.mark.parametrize("name", NAMES)
def test_features_have_the_sizes_they_say_and_rotate_with_the_image(name: str) -> None:
    net = settled(timm.create_model(name, features_only=True, widths=WIDTHS))
    x = torch.rand(1, 3, 96, 96)
    with torch.no_grad():
        levels, rotated = net(x), net(torch.rot90(x, 1, (2, 3)))
    assert net.feature_info.channels() == list(WIDTHS)
    for level, turned, reduction in zip(levels, rotated, net.feature_info.reduction(), strict=True):
        assert level.shape[2:] == (96 // reduction, 96 // reduction)
        torch.testing.assert_close(turned, torch.rot90(level, 1, (2, 3)), atol=1e-4, rtol=1e-3)
    some = timm.create_model(name, features_only=True, widths=WIDTHS, out_indices=(1, 3))
    assert [level.shape[1] for level in some(x)] == [WIDTHS[1], WIDTHS[3]]


def test_learning_rates_decay_with_depth() -> None:
    net = timm.create_model(NAMES[0], widths=WIDTHS)
    scales = {}
    for group in param_groups_layer_decay(net, layer_decay=0.5):
        for parameter in group["params"]:
            scales[id(parameter)] = group["lr_scale"]
    of = {name: scales[id(parameter)] for name, parameter in net.named_parameters()}
    stages = [max(of[name] for name in of if name.startswith(f"net.stages.{i}.")) for i in range(5)]
    assert of["net.stem.weight"] < stages[0] < stages[1] < stages[2] < stages[3] < stages[4] <= of["fc.weight"] == 1


def test_gradients_with_checkpointing_are_the_same() -> None:
    net = timm.create_model(NAMES[0], num_classes=2, widths=WIDTHS).double()
    x, found = torch.rand(2, 3, 64, 64, dtype=torch.float64), []
    for enable in (False, True):
        net.set_grad_checkpointing(enable)
        net.zero_grad()
        net(x).square().mean().backward()
        found.append([parameter.grad.clone() for parameter in net.parameters()])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_plain_decoder_breaks_equivariance_and_ours_does_not() -> None:
    plain = settled(smp.Unet("tu-" + NAMES[0], encoder_weights=None, classes=2, decoder_channels=(32, 16, 16, 8, 8)))
    ours = settled(ls.models.unet(3, 2, ls.uniform(ls.SO2(), 8), widths=(4, 6, 8), kernel="local"))
    x = torch.rand(4, 3, 96, 96)
    changes = []
    for net in (plain, ours):
        with torch.no_grad():
            upright, rotated = net(x), net(torch.rot90(x, 1, (2, 3)))
        changes.append(float((rotated - torch.rot90(upright, 1, (2, 3))).std() / upright.std()))
    print(f"change of the map by a quarter turn, over its deviation: {changes[0]:.2f} and {changes[1]:.1e}")
    assert changes[0] > 0.05
    assert changes[1] < 1e-3


def test_stages_it_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="a new width halves"):
        timm.create_model(NAMES[0], widths=(4, 6, 6, 8, 12))
    with pytest.raises(ValueError, match="output_stride = 16"):
        timm.create_model(NAMES[0], output_stride=16)
