"""What every layer and network has to get on with, one function for each; test_modules.py runs them on all networks."""

from __future__ import annotations

import copy
import pickle
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import safetensors.torch
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

import liespline as ls
from exported import same, stirred
from liespline.nn import GridAverage, shift
from liespline.nn.base import Correlation
from networks import Network, close, gradients

X64 = torch.float64


def layers(net: nn.Module) -> list[Correlation]:
    """The layers of a network that hold samples."""
    return [module for module in net.modules() if isinstance(module, Correlation)]


def compiles_as_one_graph_and_trains(case: Network) -> None:
    net, x = case(), case.image().requires_grad_()
    compiled = torch.compile(copy.deepcopy(net), backend="aot_eager", fullgraph=True)
    found, expected = compiled(x), net(x)
    close(found, expected)
    wanted = gradients(net, expected.square().mean())
    for key, gradient in gradients(compiled._orig_mod, found.square().mean()).items():
        close(gradient, wanted[key])


def is_traced_and_exported_by_torch(case: Network) -> None:
    """Fake tensors have the shapes of real ones, a traced graph and a program for any batch the same numbers."""
    net, x = case().eval(), case.image(batch=3)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert net(mode.from_tensor(x)).shape == net(x).shape
    close(make_fx(net, tracing_mode="fake", _allow_non_fake_inputs=True)(x)(x), net(x))
    batches = ({0: torch.export.Dim("b", min=2, max=64)},)
    program = torch.export.export(net, (x,), dynamic_shapes=batches, strict=False)
    for batch in (2, 5):
        x = case.image(batch)
        close(program.module()(x), net(x))


def computes_in_half_precision(case: Network) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        net, x = case().eval(), case.image()
        expected, tolerance = net(x), 16 * torch.finfo(dtype).eps
        with torch.autocast("cpu", dtype):
            mixed = net(x)
        close(mixed.float(), expected, tolerance)
        mixed.float().square().mean().backward()
        assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in layers(net)[0].parameters())
        net.to(dtype)
        kept = {b.dtype for layer in layers(net) for b in layer.buffers() if b.is_floating_point()}
        assert kept <= {torch.float32, X64}  # samples do not follow into half precision
        found = net(x.to(dtype))
        assert found.dtype == dtype
        close(found.float(), expected, tolerance)


def is_exact_as_double_after_construction(case: Network) -> None:
    single = case().eval()
    torch.set_default_dtype(X64)
    double = case().eval()
    double.load_state_dict(single.state_dict())
    x = case.image(dtype=X64)
    assert double(x).dtype == X64
    rounded = copy.deepcopy(double)
    for tensor in rounded.state_dict().values():  # the same memory as the network's
        tensor.copy_(tensor.half() if tensor.is_floating_point() else tensor)
    close(single.half().double().half().double()(x), rounded(x), 1e-12)
    lost = []
    for layer, truth in zip(layers(single), layers(double), strict=True):
        for samples, exact in ((layer.x_samples, truth.x_samples), (layer.h_samples, truth.h_samples)):
            if exact is not None:
                assert torch.equal(samples, exact)
                lost.append(float((exact.float().double() - exact).abs().max() / exact.abs().max()))
    assert not lost or max(lost) > 1e-9  # so samples that went through float32 would have been noticed


def is_called_functionally_and_in_ensembles(case: Network) -> None:
    nets, x = [case().eval() for _ in range(2)], case.image()
    state = dict(nets[1].named_parameters())
    assert torch.equal(torch.func.functional_call(nets[0], state, (x,)), nets[1](x))
    stacked, buffers = torch.func.stack_module_state(nets)
    buffers = {key: tensor for key, tensor in buffers.items() if key in nets[0].state_dict()}
    both = torch.vmap(lambda p, b: torch.func.functional_call(nets[0], (p, b), (x,)))(stacked, buffers)

    def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
        return torch.func.functional_call(nets[0], parameters, (x,)).square().mean()

    slopes = torch.vmap(torch.func.grad(loss), in_dims=(0, None))(stacked, x)
    for i, net in enumerate(nets):
        close(both[i], net(x))
        for key, wanted in gradients(net, net(x).square().mean()).items():
            close(slopes[key][i], wanted)
    of_each = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(dict(nets[0].named_parameters()), x.unsqueeze(1))
    for i in range(len(x)):
        for key, wanted in gradients(nets[0], nets[0](x[i : i + 1]).square().mean()).items():
            close(of_each[key][i], wanted)


def has_forward_derivatives(case: Network) -> None:
    net, (x, direction) = case().eval().double(), case.image(4, dtype=X64).split(2)
    _, found = torch.func.jvp(net, (x,), (direction,))
    step = 1e-6
    close(found, (net(x + step * direction) - net(x - step * direction)) / (2 * step), 1e-6)


def is_checkpointed(case: Network) -> None:
    net, x = case().eval(), case.image().requires_grad_()
    wanted = gradients(net, net(x).square().mean())
    for use_reentrant in (False, True):
        net.zero_grad()
        checkpoint(net, x, use_reentrant=use_reentrant).square().mean().backward()
        for key, parameter in net.named_parameters():
            close(parameter.grad, wanted[key])


def lies_in_memory_as_one_likes(case: Network) -> None:
    net, x = case().eval(), case.image()
    expected = net(x)
    if x.ndim in (4, 5):
        memory_format = torch.channels_last if x.ndim == 4 else torch.channels_last_3d
        net.to(memory_format=memory_format)
        x = x.contiguous(memory_format=memory_format)
    else:
        x = x.transpose(1, 2).contiguous().transpose(1, 2)
    close(net(x), expected)
    assert all(p.is_contiguous() for layer in layers(net) for p in layer.parameters())


def is_made_on_the_meta_device(case: Network) -> None:
    if not case.on_meta:
        return
    truth = case().eval()
    with torch.device("meta"):
        net, assigned = case().eval(), case()
    assert all(p.is_meta for p in net.parameters())
    net.to_empty(device="cpu").load_state_dict(truth.state_dict())
    x = case.image()
    assert torch.equal(net(x), truth(x))
    assigned.load_state_dict(truth.state_dict(), assign=True)
    for layer, right in zip(layers(assigned), layers(truth), strict=True):
        for samples, exact in zip(layer.samples(), right.samples(), strict=True):
            assert torch.equal(layer.weight, right.weight)
            assert exact is None or torch.equal(samples, exact)
    net.to("meta").to_empty(device="cpu")
    for layer in layers(net):
        layer.reset_parameters()
        assert all(p.isfinite().all() for p in layer.parameters())


def goes_through_copies_and_files(case: Network) -> None:
    net, x = case(), case.image()
    net(x)
    net.eval()
    expected = net(x)
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(twin(x), expected)
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter.zero_()
        assert torch.equal(net(x), expected)
    with tempfile.TemporaryDirectory() as folder:
        torch.save(net.state_dict(), Path(folder, "net.pt"))
        apart = {key: tensor.clone() for key, tensor in net.state_dict().items()}  # no layer under two names
        safetensors.torch.save_file(apart, Path(folder, "net.safetensors"))
        by_torch = torch.load(Path(folder, "net.pt"), weights_only=True)
        states = by_torch, safetensors.torch.load_file(Path(folder, "net.safetensors"))
    for state in states:
        other = case().eval()
        assert not torch.equal(other(x), expected)
        other.load_state_dict(state, strict=True)
        assert torch.equal(other(x), expected)
    averaged = torch.optim.swa_utils.AveragedModel(net, use_buffers=True)
    for _ in range(2):
        averaged.update_parameters(net)
    close(averaged.module.eval()(x), expected)


def holds_what_is_trained_and_nothing_else(case: Network) -> None:
    net = case()
    trained = {key for key, _ in net.named_parameters(remove_duplicate=False)}
    norms = {name for name, module in net.named_modules(remove_duplicate=False) if isinstance(module, _BatchNorm)}
    counted = {f"{name}.{key}" for name in norms for key in ("running_mean", "running_var", "num_batches_tracked")}
    before = {key: tensor.clone() for key, tensor in net.eval().state_dict().items()}
    assert before.keys() == trained | counted
    net(case.image())
    assert all(torch.equal(before[key], tensor) for key, tensor in net.state_dict().items())
    net.train()(case.image()).sum().backward()
    after = net.state_dict()
    assert after.keys() == before.keys()
    assert {key for key, tensor in after.items() if not torch.equal(before[key], tensor)} == counted


def is_exported(case: Network) -> None:
    """As plain layers, compact ones, by torch.export and in ONNX Runtime, for any batch."""
    net, x = case(), case.image()
    plain = same(net, x)  # gives every norm statistics of its own
    compact = ls.export(net, compact=True)
    batches = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(plain, (x,), dynamic_shapes=batches)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "net.onnx")
        torch.onnx.export(plain, (x,), file, dynamo=True, dynamic_shapes=batches, verbose=False)
        session = onnxruntime.InferenceSession(file)
    for size in (1, 5):
        x = case.image(size)
        (by_onnx,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        with torch.no_grad():
            expected, found = net(x), (program.module()(x), compact(x), torch.from_numpy(by_onnx))
        for one in found:
            torch.testing.assert_close(one, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


def comes_back_from_a_shift_to_the_bit(case: Network) -> None:
    net, x = case().double().eval(), case.image(dtype=X64)
    before, trained = net(x), {key: value.clone() for key, value in net.state_dict().items()}
    grid = layers(net)[0].out_grid
    group = grid.group.quotient_of or grid.group
    with shift(net, group.exp(0.3 * torch.linspace(1, 2, group.dim, dtype=X64))):
        changed = (net(x) - before).abs().max()
    assert torch.equal(net(x), before)
    assert all(torch.equal(trained[key], value) for key, value in net.state_dict().items())
    assert bool(changed > 1e-6) == (group.dim > 0 and len(layers(net)[0].kernel_size) > 0)


def is_averaged_over_grids_and_exported(case: Network) -> None:
    net, x = case().double().eval(), case.image(dtype=X64)
    if len(layers(net)[0].out_grid) > 1:
        over = GridAverage(stirred(net))
        close(ls.export(over)(x), over(x), 1e-10)


CHECKS: dict[str, Callable[[Network], None]] = {
    check.__name__: check
    for check in (
        compiles_as_one_graph_and_trains,
        is_traced_and_exported_by_torch,
        computes_in_half_precision,
        is_exact_as_double_after_construction,
        is_called_functionally_and_in_ensembles,
        has_forward_derivatives,
        is_checkpointed,
        lies_in_memory_as_one_likes,
        is_made_on_the_meta_device,
        goes_through_copies_and_files,
        holds_what_is_trained_and_nothing_else,
        is_exported,
        comes_back_from_a_shift_to_the_bit,
        is_averaged_over_grids_and_exported,
    )
}


def check_module(case: Network, *names: str) -> None:
    """Run all checks, or those of these names, on a network."""
    for name in names or CHECKS:
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*energy falls outside")
            CHECKS[name](case)
