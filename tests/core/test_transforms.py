"""The layers under torch.func, fake tensors, tracing and export, averaged weights, parametrisations, shared memory."""

from __future__ import annotations

import io
import math

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils import parametrize

import liespline as ls
from networks import NETWORKS, close, every_network, gradients, image

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")
SO2 = ls.uniform(ls.SO2(), 4)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@every_network
def test_gradients_of_an_ensemble(name: str) -> None:
    nets = [NETWORKS[name]().eval() for _ in range(2)]
    x = image(nets[0])
    stacked, _ = torch.func.stack_module_state(nets)

    def loss(parameters: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(nets[0], parameters, (x,)).square().mean()

    found = torch.vmap(torch.func.grad(loss))(stacked)
    for i, net in enumerate(nets):
        for key, wanted in gradients(net, net(x).square().mean()).items():
            close(found[key][i], wanted)


@every_network
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")  # torch's own, in forward mode
def test_forward_derivatives(name: str) -> None:
    net = NETWORKS[name]().eval().double()
    x, direction = (image(net, dtype=torch.float64) for _ in range(2))
    _, found = torch.func.jvp(net, (x,), (direction,))
    step = 1e-6
    close(found, (net(x + step * direction) - net(x - step * direction)) / (2 * step), 1e-6)


@every_network
def test_fake_tensors_have_the_shapes_of_real_ones(name: str) -> None:
    net = NETWORKS[name]().eval()
    x = image(net)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        found = net(mode.from_tensor(x))
    assert found.shape == net(x).shape


@every_network
def test_a_traced_graph_computes_the_same(name: str) -> None:
    net = NETWORKS[name]().eval()
    x = image(net)
    graph = make_fx(net, tracing_mode="fake", _allow_non_fake_inputs=True)(x)
    close(graph(x), net(x))


@every_network
def test_torch_export_with_any_batch_size(name: str) -> None:
    net = NETWORKS[name]().eval()
    program = torch.export.export(
        net, (image(net, batch=3),), dynamic_shapes=({0: torch.export.Dim("b", min=2, max=64)},), strict=False
    )
    for batch in (2, 5):
        x = image(net, batch)
        close(program.module()(x), net(x))


def test_weights_that_are_not_finite_go_through_as_in_a_convolution() -> None:
    layer = ls.GConv(1, 1, 5, SO2)
    with torch.no_grad():
        layer.weight[0, 0, 0, 0] = math.nan
    assert layer(torch.zeros(1, 1, 4, 9, 9)).isnan().any()


# ---- what a layer holds ----


@every_network
def test_averaged_models_take_the_buffers(name: str) -> None:
    net = NETWORKS[name]()
    averaged = torch.optim.swa_utils.AveragedModel(net, use_buffers=True)
    averaged.update_parameters(net)
    averaged.update_parameters(net)
    x = image(net)
    close(averaged.module.eval()(x), net.eval()(x))


def test_sixty_rotations_take_little_memory() -> None:
    grid = ls.repulsion(ls.SO3(), 60)
    for layer in (ls.Lift(1, 1, 5, grid), ls.GConv(1, 1, 5, grid), ls.GConv(1, 1, 3, grid, padding=1)):
        samples = {"x_samples", "h_samples"}
        assert {name for name, buffer in layer.named_buffers() if buffer is not None} <= samples
        file = io.BytesIO()
        torch.save(layer, file)
        held = sum(t.numel() * t.element_size() for t in (*layer.parameters(), *layer.buffers()))
        assert file.getbuffer().nbytes - held < 1_000_000
    assert not list(layer.children())  # nothing below it when printed


def test_samples_are_the_layers_own() -> None:
    one = ls.GConv(1, 1, 5, SO2, dtype=torch.float64)
    expected = one.kernel().detach().clone()
    for samples in (one.x_samples, one.h_samples):
        samples.zero_()
    other = ls.GConv(1, 1, 5, SO2, dtype=torch.float64)
    other.load_state_dict(one.state_dict())
    assert torch.equal(other.kernel(), expected)


def test_all_of_a_layer_is_shared_between_processes() -> None:
    layer = ls.GConv(1, 1, 5, SO2)
    layer.share_memory()
    assert all(tensor.is_shared() for tensor in (*layer.parameters(), *layer.buffers()))


def test_empty_memory_is_filled_again() -> None:
    layer = ls.GConv(1, 1, 5, SO2)
    expected = layer.kernel().detach()
    state = layer.state_dict()
    empty = ls.GConv(1, 1, 5, SO2).to_empty(device="cpu")
    empty.load_state_dict(state)
    assert torch.equal(empty.kernel(), expected)


class Counted(nn.Module):
    """A parametrisation that knows how often it was evaluated."""

    calls = 0

    def forward(self, weight: Tensor) -> Tensor:
        type(self).calls += 1
        return 2 * weight


@pytest.mark.parametrize("make", [lambda: ls.Lift(1, 2, 5, SO2), lambda: ls.GConv(1, 2, 5, SO2)])
def test_a_parametrised_weight_is_computed_once(make) -> None:
    layer = make()
    x = torch.randn(1, 1, 9, 9) if isinstance(layer, ls.Lift) else torch.randn(1, 1, 4, 9, 9)
    expected = 2 * (layer(x) - layer.bias.view(-1, 1, 1, 1))
    parametrize.register_parametrization(layer, "weight", Counted())
    Counted.calls = 0
    close(layer(x), expected)
    assert Counted.calls == 1
