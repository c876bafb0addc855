"""What every layer and network has to compute, one function for each; test_modules.py runs them on all networks."""

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.torch_version import TorchVersion
from torch.utils.checkpoint import checkpoint

import liespline as ls
from exported import same
from liespline.nn import GridAverage
from networks import Network, close, gradients, layers

X64 = torch.float64


def compiles_as_one_graph_and_trains(case: Network) -> None:
    if not case.traced:
        return
    net, x = case(), case.image().requires_grad_()
    compiled = torch.compile(copy.deepcopy(net), backend="aot_eager", fullgraph=True)
    found, expected = compiled(x), net(x)
    close(found, expected)
    wanted = gradients(net, expected.square().mean())
    for key, gradient in gradients(compiled._orig_mod, found.square().mean()).items():
        close(gradient, wanted[key])


def is_traced_and_exported_by_torch(case: Network) -> None:
    """Fake tensors have the shapes of real ones, a traced graph and a program for any batch the same numbers."""
    if not case.traced:
        return
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


def is_exported(case: Network) -> None:
    """As plain layers and compact ones; averaged over grids."""
    net, x = case(), case.image()
    same(net, x)  # gives every norm statistics of its own
    compact = ls.export(net, compact=True)
    with torch.no_grad():
        expected = net(x)
        torch.testing.assert_close(compact(x), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))
    if len(layers(net)[0].out_grid) > 1:
        over, x = GridAverage(net.double()), x.double()
        close(ls.export(over)(x), over(x), 1e-10)


def runs_as_a_program_and_in_onnx(case: Network) -> None:
    """Exported again, by torch.export and to ONNX Runtime, for any batch."""
    if not case.in_onnx or TorchVersion(torch.__version__) < "2.7":  # torch 2.6 gives ONNX no mean of any batch size
        return
    net, x = case(), case.image()
    plain, batches = same(net, x), ({0: torch.export.Dim("batch")},)
    program = torch.export.export(plain, (x,), dynamic_shapes=batches)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "net.onnx")
        torch.onnx.export(plain, (x,), file, dynamo=True, dynamic_shapes=batches, verbose=False)
        session = onnxruntime.InferenceSession(file)
    for size in (1, 5):
        x = case.image(size)
        (by_onnx,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        with torch.no_grad():
            expected, found = net(x), (program.module()(x), torch.from_numpy(by_onnx))
        for one in found:
            torch.testing.assert_close(one, expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


CHECKS: tuple[Callable[[Network], None], ...] = (
    compiles_as_one_graph_and_trains,
    is_traced_and_exported_by_torch,
    computes_in_half_precision,
    is_exact_as_double_after_construction,
    is_called_functionally_and_in_ensembles,
    has_forward_derivatives,
    is_checkpointed,
    is_exported,
    runs_as_a_program_and_in_onnx,
)
