"""Layers without numbers: built and run under FakeTensorMode, traced by make_fx, and on the meta device."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import liespline as ls
from liespline import models
from liespline.models.kernels import h_basis
from liespline.nn import BatchNorm, Downsample, NormReLU, SeparableGConv

TURNS = ls.uniform(ls.SO2(), 8)


def _pictures() -> nn.Module:
    return nn.Sequential(
        ls.Lift(1, 3, 5, TURNS, padding=2, padding_mode="disc"), NormReLU(3, 2), ls.GConv(3, 4, 5, TURNS), BatchNorm(4),
        ls.Project("vector", TURNS),
    )  # fmt: skip


def _separable() -> nn.Module:
    return nn.Sequential(
        ls.Lift(1, 4, 5, TURNS), SeparableGConv(4, 4, 5, TURNS, padding="same"), Downsample(2),
        ls.GConv(4, 8, 5, TURNS, h_basis=h_basis(TURNS, "local", 3)), ls.Project("max", TURNS),
    )  # fmt: skip


def _trained_centres() -> nn.Module:
    grid = ls.uniform(ls.Scale(2), 3, spacing=0.4)
    basis = ls.SplineBasis(ls.local(ls.Scale(2), 3, grid.spacing), trainable=True)
    return nn.Sequential(
        ls.Lift(1, 2, 5, grid, x_basis=ls.SplineBasis(ls.disc(3), trainable=True)),
        ls.GConv(2, 2, 5, grid, h_basis=basis),
    )


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "pictures": _pictures,
    "separable, local": _separable,
    "trained centres": _trained_centres,
    "resnet": lambda: models.resnet(1, 3, ls.uniform(ls.O2(), 8), parameters=20_000),
    "unet": lambda: models.unet(1, 2, TURNS, parameters=20_000),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_built_and_trained_in_fake_mode(name: str) -> None:
    shape, parameters = shape_of(name)
    with FakeTensorMode():
        net = NETWORKS[name]()
        out = net(torch.empty(2, 1, 32, 32))
        out.square().mean().backward()
    assert out.shape == shape
    assert all(isinstance(value, FakeTensor) for value in (*net.parameters(), *net.buffers()))
    assert [p.grad.shape for p in net.parameters() if p.grad is not None] == parameters


def shape_of(name: str) -> tuple[torch.Size, list[torch.Size]]:
    net = NETWORKS[name]()
    out = net(torch.randn(2, 1, 32, 32))
    out.square().mean().backward()
    return out.shape, [p.grad.shape for p in net.parameters() if p.grad is not None]


def test_grids_made_in_fake_mode_are_real_afterwards() -> None:
    with FakeTensorMode():
        grid = ls.uniform(ls.SO2(), 7)
        ls.Lift(1, 2, 5, grid)
    assert not isinstance(grid.elements, FakeTensor)
    layer, x = ls.Lift(1, 2, 5, grid), torch.randn(1, 1, 9, 9)
    assert layer(x).isfinite().all()
    assert not isinstance(layer.x_samples, FakeTensor)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_training_norm_is_traced(mode: str) -> None:
    """In place of kernels that a tracer cannot follow, operators, which it can."""
    net, x = _pictures(), torch.randn(2, 1, 16, 16)
    traced = make_fx(lambda x: net(x), tracing_mode=mode, _allow_non_fake_inputs=True)(x)
    torch.testing.assert_close(traced(2 * x), net(2 * x))


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("how", ["default device", "to"])
def test_networks_on_the_meta_device_have_shapes(name: str, how: str) -> None:
    if how == "to":
        net = NETWORKS[name]().to("meta")
    else:
        with torch.device("meta"):
            net = NETWORKS[name]()
    out = net(torch.empty(2, 1, 32, 32, device="meta"))
    out.square().mean().backward()
    assert (out.shape, out.device.type) == (shape_of(name)[0], "meta")


def test_a_layer_built_on_the_meta_device_is_complete_once_it_has_memory() -> None:
    torch.manual_seed(0)
    right, x = _pictures().eval(), torch.randn(2, 1, 16, 16)
    with torch.device("meta"):
        late = _pictures().eval()
    late = late.to_empty(device="cpu")
    late.load_state_dict(right.state_dict())
    torch.testing.assert_close(late(x), right(x))


def test_autocast_of_other_devices_changes_nothing_on_the_meta_device() -> None:
    layer = ls.Lift(1, 2, 5, TURNS, device="meta")

    def run(x: Tensor) -> torch.dtype:
        return layer(x).dtype

    with torch.autocast("cpu", torch.bfloat16):
        assert run(torch.empty(1, 1, 9, 9, device="meta")) == torch.float32
