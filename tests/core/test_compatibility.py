"""The layers get on with everything else a PyTorch user does to modules."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import two_processes
from liespline import GConv, functional, paths
from networks import NETWORKS, SO2, close, every_network, gradients, image

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)
    torch.compiler.reset()


# ---- torch.compile ----


@every_network
def test_compiles_as_one_graph_and_trains(name: str) -> None:
    net = NETWORKS[name]()
    x = image(net).requires_grad_()
    compiled = torch.compile(copy.deepcopy(net), backend="aot_eager", fullgraph=True)
    found, expected = compiled(x), net(x)
    close(found, expected)
    wanted = gradients(net, expected.square().mean())
    for key, gradient in gradients(compiled._orig_mod, found.square().mean()).items():
        close(gradient, wanted[key])


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own
def test_compiles_by_inductor() -> None:
    net = NETWORKS["SO2 local"]()
    x = image(net)
    compiled = torch.compile(net, fullgraph=True)
    close(compiled(x), net(x))
    compiled(x).square().mean().backward()
    wanted = gradients(net, net(x).square().mean())
    for key, parameter in net.named_parameters():
        close(parameter.grad, wanted[key])


def test_compiles_once_for_all_batch_sizes() -> None:
    net = NETWORKS["SO2 dense"]().eval()
    counted = CompileCounter()
    compiled = torch.compile(net, backend=counted, fullgraph=True, dynamic=True)
    for batch in (4, 3, 5):
        x = image(net, batch)
        close(compiled(x), net(x))
    assert counted.frame_count == 1


# ---- precision ----


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_samples_kernels_in_float32(dtype: torch.dtype) -> None:
    layer = GConv(3, 4, 5, SO2, bias=False)
    x = torch.randn(2, 3, 8, 12, 12)
    exact = layer.kernel().detach()
    with torch.autocast("cpu", dtype), paths.use("dense"):
        assert torch.equal(layer.kernel(), exact)
        found = layer(x)
    # A kernel rounded once, after it was sampled, and convolved in half precision: the very same numbers.
    weight = exact.flatten(2, 3).flatten(0, 1).to(dtype)
    expected = F.conv2d(x.flatten(1, 2).to(dtype), weight).unflatten(1, (4, 8))
    assert torch.equal(found, expected)
    # What sampling in half precision would give instead is far from that.
    coefficients, x_samples, h_samples = (t.to(dtype) for t in (layer.weight, layer.x_samples, layer.h_samples))
    coarse = functional.kernel(coefficients, x_samples, h_samples).flatten(2, 3).flatten(0, 1)
    assert (coarse - weight).abs().max() > 4 * torch.finfo(dtype).eps * weight.abs().mean()


@every_network
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    net = NETWORKS[name]().eval()
    x = image(net)
    expected = net(x)
    tolerance = 16 * torch.finfo(dtype).eps
    with torch.autocast("cpu", dtype):
        mixed = net(x)
    close(mixed.float(), expected, tolerance)
    mixed.float().square().mean().backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in net[0].parameters())
    net.to(dtype)
    kept = {b.dtype for b in (*net[0].buffers(), *net[3].buffers()) if b.is_floating_point()}
    assert kept <= {torch.float32, torch.float64}  # samples do not follow into half precision
    found = net(x.to(dtype))
    assert found.dtype == dtype
    close(found.float(), expected, tolerance)


@every_network
def test_double_after_construction_is_exact(name: str) -> None:
    single = NETWORKS[name]()
    torch.set_default_dtype(torch.float64)
    double = NETWORKS[name]()
    double.load_state_dict(single.state_dict())
    x = image(single, dtype=torch.float64)
    expected = double(x)
    assert expected.dtype == torch.float64
    close(single.half().double().half().double()(x), _rounded(double)(x), 1e-12)
    layer, truth = single[3], double[3]
    for key in ("x_samples", "h_samples"):
        exact = getattr(truth, key)
        if exact is not None:
            assert torch.equal(getattr(layer, key), exact)
            if len(layer.grid) > 1:  # so float32 samples turned to float64 would have been noticed
                assert (exact.float().double() - exact).abs().max() > 1e-9 * exact.abs().max()


def _rounded(net: nn.Module) -> nn.Module:
    """Return a float64 network whose learned numbers have been through float16."""
    rounded = copy.deepcopy(net)
    with torch.no_grad():
        for tensor in (*rounded.parameters(), *rounded[1].buffers()):
            tensor.copy_(tensor.half() if tensor.is_floating_point() else tensor)
    return rounded


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_default_dtype(dtype: torch.dtype) -> None:
    torch.set_default_dtype(dtype)
    net = NETWORKS["SO2 deformable"]()
    assert {p.dtype for p in net.parameters()} == {dtype}
    assert net(torch.randn(2, 2, 14, 14)).dtype == dtype


# ---- torch.func, checkpointing, two processes ----


@every_network
def test_functional_call_and_ensembles(name: str) -> None:
    nets = [NETWORKS[name]().eval() for _ in range(2)]
    x = image(nets[0])
    state = dict(nets[1].named_parameters())
    assert torch.equal(torch.func.functional_call(nets[0], state, (x,)), nets[1](x))
    stacked, buffers = torch.func.stack_module_state(nets)
    buffers = {key: tensor for key, tensor in buffers.items() if key in nets[0].state_dict()}
    both = torch.vmap(lambda p, b: torch.func.functional_call(nets[0], (p, b), (x,)))(stacked, buffers)
    for found, net in zip(both, nets, strict=True):
        close(found, net(x))


def test_gradients_of_each_sample() -> None:
    net = NETWORKS["SO2 deformable"]().eval()
    x = image(net, batch=3)

    def loss(parameters: dict[str, Tensor], sample: Tensor) -> Tensor:
        return torch.func.functional_call(net, parameters, (sample.unsqueeze(0),)).square().sum()

    found = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(dict(net.named_parameters()), x)
    for i in range(3):
        wanted = gradients(net, net(x[i : i + 1]).square().sum())
        for key, gradient in found.items():
            close(gradient[i], wanted[key])


@every_network
@pytest.mark.parametrize("use_reentrant", [False, True])
def test_gradient_checkpointing(name: str, use_reentrant: bool) -> None:
    net = NETWORKS[name]().eval()
    x = image(net).requires_grad_()
    wanted = gradients(net, net(x).square().mean())
    checkpoint(net, x, use_reentrant=use_reentrant).square().mean().backward()
    for key, parameter in net.named_parameters():
        close(parameter.grad, wanted[key])


def test_two_processes_have_the_gradients_of_their_joint_batch(tmp_path: Path) -> None:
    names = ["SO2 local", "SO2 deformable", "Scale 2-D", "SO3 local"]
    torch.multiprocessing.spawn(two_processes.train, args=(names, str(tmp_path)), nprocs=2)
    for name in names:
        net = two_processes.network(name)
        wanted = gradients(net, net(two_processes.joint_batch(net)).square().mean())
        for rank in range(2):
            found = torch.load(tmp_path / f"{name} {rank}.pt", weights_only=True)
            for key, gradient in found.items():
                close(gradient, wanted[key], 1e-12)
