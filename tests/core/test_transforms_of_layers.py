"""Derivatives of every kind through layers, with the path of a GPU played on the CPU.

A wrong rule gives tangents of zero without a word; the truth here is a difference of two calls.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd import functional as classic
from torch.torch_version import TorchVersion

import liespline as ls
from liespline import ops
from liespline.ops import choose, decide
from liespline.ops.correlate import cudnn, triton
from liespline.ops.correlate.hopper import operators as hopper
from liespline.ops.depthwise import hopper as depthwise
from liespline.ops.path import changed

X64 = torch.float64


@pytest.fixture
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose what a GPU would: its convolution by cuDNN is made of torch's operators, which run on a CPU too."""
    ordinary = decide.decide
    gpu = torch.device("cuda")
    monkeypatch.setattr(decide, "decide", lambda q, plan: ordinary(changed(q, device=gpu, cuda=True), plan))
    monkeypatch.setattr(choose, "traced", lambda x: True)  # what is traced is remembered nowhere
    torch.compiler.reset()


def network() -> nn.Module:
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), 4)
    layers = ls.Lift(1, 9, 5, grid, padding=2), nn.ReLU(), ls.GConv(9, 9, 5, grid, padding=2)
    return nn.Sequential(*layers).double().eval().requires_grad_(False)


def inputs() -> tuple[Tensor, Tensor]:
    torch.manual_seed(1)
    return torch.randn(2, 1, 9, 9, dtype=X64), torch.randn(2, 1, 9, 9, dtype=X64)


def slope(f: Callable[[Tensor], Tensor], x: Tensor, v: Tensor) -> Tensor:
    return (f(x + 1e-6 * v) - f(x - 1e-6 * v)) / 2e-6


def by_jvp(f: Callable[[Tensor], Tensor], x: Tensor, v: Tensor) -> Tensor:
    return torch.func.jvp(f, (x,), (v,))[1]


def by_dual_numbers(f: Callable[[Tensor], Tensor], x: Tensor, v: Tensor) -> Tensor | None:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, v))).tangent


def compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(f, backend="aot_eager", fullgraph=True)


@contextmanager
def refused_by_new_torch() -> Iterator[None]:
    """torch 2.15 gives a compiled network no dual numbers at all, where older ones have to be told to compile again."""
    try:
        yield
    except torch._dynamo.exc.Unsupported as error:
        if TorchVersion(torch.__version__) < "2.14" or "dual tensor" not in str(error):
            raise


HOW: dict[str, Callable[..., Tensor | None]] = {
    "jvp": by_jvp,
    "dual numbers": by_dual_numbers,
    "compiled jvp": lambda f, x, v: compiled(lambda x, v: by_jvp(f, x, v))(x, v),
    "compiled dual numbers": lambda f, x, v: compiled(lambda x, v: by_dual_numbers(f, x, v))(x, v),
    "jvp of a compiled network": lambda f, x, v: by_dual_numbers(compiled(f), x, v),
}


@pytest.mark.parametrize("how", HOW)
def test_tangents_of_layers(on_a_gpu: None, how: str) -> None:
    net, (x, v) = network(), inputs()
    assert choose.choose(x, net[0].weight, net[0].window.sizes, (1, 1), (2, 2)).methods == ("cudnn",)
    with refused_by_new_torch():
        torch.testing.assert_close(HOW[how](net, x, v), slope(net, x, v), rtol=1e-5, atol=1e-6)


def test_a_network_compiled_before_dual_numbers_is_compiled_again(on_a_gpu: None) -> None:
    net, (x, v) = network(), inputs()
    again = compiled(net)
    torch.testing.assert_close(again(x), net(x))
    with refused_by_new_torch():
        torch.testing.assert_close(by_dual_numbers(again, x, v), slope(net, x, v), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_gradients_of_each_sample_and_products_with_the_hessian(on_a_gpu: None, way: str) -> None:
    net, (x, v) = network(), inputs()
    wrap = compiled if way == "compiled" else lambda f: f

    def gradient(x: Tensor) -> Tensor:
        return torch.func.grad(lambda x: net(x).pow(3).sum())(x)

    each = torch.stack([gradient(one[None]) for one in x])
    torch.testing.assert_close(wrap(torch.vmap(gradient))(x.unsqueeze(1)), each)
    product = wrap(lambda x, v: torch.func.jvp(gradient, (x,), (v,))[1])(x, v)
    torch.testing.assert_close(product, slope(gradient, x, v), rtol=1e-4, atol=1e-4)


def test_many_gradients_at_once_by_the_path_of_a_gpu(on_a_gpu: None) -> None:
    net, (x, _) = network(), inputs()
    compare_batched(net, x)


def compare_batched(net: nn.Module, x: Tensor) -> None:
    """Many gradients at once, and the Hessian row by row in one call, against one at a time."""
    wanted = (x.requires_grad_(), *(p.requires_grad_() for p in net.parameters()))
    out = net(x)
    directions = torch.randn(3, *out.shape, dtype=X64)
    found = torch.autograd.grad(out, wanted, directions, is_grads_batched=True, retain_graph=True)
    single = [torch.autograd.grad(out, wanted, one, retain_graph=True) for one in directions]
    for many, alone in zip(found, zip(*single, strict=True), strict=True):
        torch.testing.assert_close(many, torch.stack(alone))

    def energy(scales: Tensor) -> Tensor:
        return net(x.detach() * scales.sum()).square().sum()

    scales = torch.tensor([0.4, 0.6], dtype=X64)
    expected = classic.hessian(energy, scales)
    torch.testing.assert_close(classic.hessian(energy, scales, vectorize=True), expected)
    torch.testing.assert_close(torch.func.hessian(energy)(scales).detach(), expected)
    few = classic.jacobian(lambda s: net(x.detach() * s.sum()).sum((0, 2, 3, 4)), scales)
    many = classic.jacobian(lambda s: net(x.detach() * s.sum()).sum((0, 2, 3, 4)), scales, vectorize=True)
    torch.testing.assert_close(many, few)


def test_higher_derivatives_of_a_layer_by_fourier() -> None:
    torch.manual_seed(0)
    layer = ls.GConv(24, 24, 5, ls.uniform(ls.SO2(), 8)).double()
    x = torch.randn(2, 24, 8, 32, 32, dtype=X64)
    with ops.use("fourier"):
        assert choose.choose(x, layer.weight, layer.window.sizes, (1, 1), (0, 0), layer.plan).methods == ("fourier",)
        compare_batched(layer, x)


def refused() -> Iterator[tuple[str, Callable[[Tensor], Any], Tensor]]:
    """The operators called directly, each with an input in which it could be differentiated."""
    weight, image = torch.randn(1, 2, 2, 3, 3), torch.randn(1, 2, 5, 5)
    yield "pad", lambda x: cudnn.pad.op(x, 2), image
    yield "convolve", lambda x: cudnn.correlate.op(x, weight, [1, 1], [0, 0]), image
    yield "convolve by name", lambda x: torch.ops.liespline.convolve(x, weight, [1, 1], [0, 0]), image
    many, ones = torch.zeros(1, 1, dtype=torch.long), torch.ones(1, dtype=torch.long)
    fields, blocks = torch.randn(1, 1, 1, 5, 5, 2), torch.randn(1, 1, 1, 3, 3, 2, 2)
    yield "gathered", lambda x: triton.correlate.op(x, blocks, many, ones, many, many, ones, [1] * 3, [0] * 3), fields
    kernel, last = torch.randn(2, 1, 2, 1, 1, 3, 3), torch.randn(1, 1, 5, 5, 1, 2)
    yield "hopper", lambda x: hopper.correlate.op(x, kernel, [0], [0] * 3), last
    yield "depthwise", lambda x: depthwise.correlate.op(x, torch.randn(3, 3, 2), [0, 0]), torch.randn(1, 5, 5, 2)


@pytest.mark.parametrize(("name", "call", "x"), [*refused()], ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("how", [by_jvp, by_dual_numbers])
def test_operators_called_directly_refuse_forward_mode(
    name: str, call: Callable[[Tensor], Any], x: Tensor, how: Callable[..., Any]
) -> None:
    with pytest.raises(NotImplementedError, match=r"has no forward-mode derivative"):
        how(call, x, torch.ones_like(x))


@pytest.mark.parametrize("how", [by_jvp, by_dual_numbers])
def test_the_eager_convolution_has_its_tangent(how: Callable[..., Any]) -> None:
    kernel, x = torch.randn(1, 2, 2, 3, 3), torch.randn(1, 2, 5, 5)
    found = how(lambda x: cudnn.convolve(x, kernel, (1, 1), (0, 0)), x, x)
    torch.testing.assert_close(found, cudnn.convolve(x, kernel, (1, 1), (0, 0)))  # it is linear
