"""The path for Hopper GPUs as far as it goes without one: operators, and what lies where between layers.

The launches are played by torch's own operators; the kernels themselves are checked by `reliability/gpu_hopper.py`, and
what brings weights into their order by `interpreted_hopper.py`.
"""

import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline import ops
from liespline.models.kernels import h_basis
from liespline.models.unet import _joined
from liespline.ops.correlate import cudnn, whole
from liespline.ops.correlate.hopper import operators
from liespline.ops.layout import Order, order_of
from liespline.ops.path import Choice

from .path_cases import assert_same

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def innermost(x: Tensor) -> Tensor:
    return x.movedim((2, 1), (-2, -1)).contiguous().movedim((-2, -1), (2, 1))


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Take the path on the CPU and in any precision; returns the names of what is launched."""
    seen: list[str] = []

    def forward(
        x: Tensor, kernel: Tensor, table: Tensor, lines: tuple[int, ...], size: list[int], padding: list[int]
    ) -> Tensor:
        seen.append("forward")
        return operators.plain(x, kernel, list(lines), padding).contiguous()

    def backward(x: Tensor, kernel: Tensor, grad: Tensor, lines: tuple[int, ...], padding: list[int]) -> list[Tensor]:
        # Inside an operator nothing is differentiated: the gradients of a grouped convolution, gathered by hand.
        a, t = kernel.shape[1], kernel.shape[3]
        table = torch.tensor(lines)
        read = (table >= 0).to(x.dtype).unsqueeze(-1)
        taken = (x.index_select(4, table.clamp(min=0)) * read).flatten(4).movedim(-1, 1)
        weight = kernel.transpose(0, 1).transpose(2, 3).flatten(2, 3).flatten(0, 1)
        dx, dw, _ = torch.ops.aten.convolution_backward(
            grad.flatten(4).movedim(-1, 1), taken, weight, None, [1] * 3, padding, [1] * 3, False, [0] * 3, a,
            [True, True, False],
        )  # fmt: skip
        sent = dx.movedim(1, -1).unflatten(-1, (a * t, -1)) * read
        x_grad = torch.zeros_like(x).index_add(4, table.clamp(min=0), sent)
        kernel_grad = dw.unflatten(0, (a, -1)).unflatten(2, (t, -1)).transpose(2, 3).transpose(0, 1)
        return [x_grad, kernel_grad * (table >= 0).view(1, a, 1, t, 1, 1, 1)]

    def input_gradient(
        grad: Tensor, kernel: Tensor, table: Tensor, lines: tuple[int, ...], size: list[int], *rest: Any
    ) -> Tensor:
        fields, padding = rest
        seen.append("input")
        x = grad.new_zeros(len(grad), *size, fields, kernel.shape[2])
        return backward(x, kernel, grad, lines, padding)[0].contiguous()

    def weight_gradient(
        x: Tensor, grad: Tensor, found: Tensor, table: Tensor, lines: tuple[int, ...], padding: list[int]
    ) -> None:
        seen.append("weight")
        found.copy_(backward(x, torch.zeros_like(found), grad, lines, padding)[1])

    module = types.ModuleType("liespline.ops.correlate.hopper.launch")
    module.__dict__.update(forward=forward, input_gradient=input_gradient, weight_gradient=weight_gradient)
    monkeypatch.setitem(sys.modules, "liespline.ops.correlate.hopper.launch", module)
    monkeypatch.setattr("liespline.ops.correlate.hopper.launch", module, raising=False)
    monkeypatch.setattr(operators, "available", lambda device, dtype: True)
    return seen


def layer(channels: int, outputs: int, degree: int = 1, **options: Any) -> ls.GConv:
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), 8)
    basis = h_basis(grid, "local", 3, degree=degree)
    return ls.GConv(channels, outputs, 5, grid, h_basis=basis, **options).double()


def results(module: nn.Module, x: Tensor, path: str) -> list[Tensor]:
    x = x.detach().requires_grad_()
    with ops.use(path):
        out = module(x)
        torch.manual_seed(1)
        return [out, *torch.autograd.grad(out, (x, *module.parameters()), torch.randn(out.shape, dtype=x.dtype))]


@pytest.mark.parametrize("degree", [1, 2], ids=["fields", "mixed fields"])
@pytest.mark.parametrize("options", [{}, {"padding": "same"}, {"padding": 1, "padding_mode": "circular"}], ids=str)
@pytest.mark.parametrize("together", [True, False], ids=["innermost", "planes"])
def test_a_layer_is_what_it_is_by_the_dense_path(
    launches: list[str], degree: int, options: dict[str, Any], together: bool
) -> None:
    module, x = layer(3, 5, degree, **options), torch.randn(4, 3, 8, 7, 6, dtype=torch.float64)
    found = results(module, innermost(x) if together else x, "hopper")
    assert launches == ["forward", "input", "weight"]
    torch.testing.assert_close(found, results(module, x, "dense"), **EXACT)
    assert order_of(found[0]) is Order.FIELDS


def test_operators_follow_torch_rules_in_every_order_of_memory(launches: list[str]) -> None:
    x = torch.randn(4, 1, 7, 6, 8, 3, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(5, 3, 8, 1, 5, 5, 2, dtype=torch.float64).movedim((2, -1), (1, 3)).requires_grad_()
    lines = [f for a in range(8) for f in (a, (a + 1) % 8 if a else -1)]
    for order in (kernel, kernel.detach().contiguous().requires_grad_()):
        torch.library.opcheck(operators.correlate.op, (x, order, lines, [0, 1, 4]))


def test_layers_of_several_widths_are_compiled_together(launches: list[str]) -> None:
    """Each reads another table, and constants of one name were one too many for the compiler."""
    network = nn.Sequential(*(layer(i, o, padding="same") for i, o in ((3, 5), (5, 2), (2, 4))))
    x = innermost(torch.randn(4, 3, 8, 7, 6, dtype=torch.float64)).requires_grad_()
    torch.compiler.reset()
    compiled = torch.compile(network, backend="aot_eager", fullgraph=True)
    with ops.use("hopper"):
        found, right = compiled(x), network(x)
        torch.testing.assert_close(found, right, **EXACT)
        torch.testing.assert_close(*(torch.autograd.grad(out.sin().sum(), x) for out in (found, right)), **EXACT)


def test_a_compiled_layer_and_gradients_of_gradients(launches: list[str]) -> None:
    module, x = layer(3, 5, 2), innermost(torch.randn(4, 3, 8, 7, 6, dtype=torch.float64))
    torch.compiler.reset()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    x.requires_grad_()
    with ops.use("hopper"):
        one, right = compiled(x), module(x)
        assert_same(one, right, [module.weight], 1e-10)
        assert one.stride() == right.stride()
        (slope,) = torch.autograd.grad(module(x).square().sum(), module.weight, create_graph=True)
        (again,) = torch.autograd.grad(slope.square().sum(), module.weight)
    with ops.use("dense"):
        (slope,) = torch.autograd.grad(module(x).square().sum(), module.weight, create_graph=True)
        (truth,) = torch.autograd.grad(slope.square().sum(), module.weight)
    torch.testing.assert_close(again, truth, rtol=1e-9, atol=1e-6)


def test_what_lies_between_layers_keeps_fields_together() -> None:
    x = innermost(torch.randn(2, 4, 8, 8, 6))
    between = [ls.nn.MaxPool(2), ls.nn.Downsample(2), ls.nn.Upsample(2), nn.ReLU(), ls.nn.FieldDropout(0.5), nn.SiLU()]
    for module in between:
        out, right = module(x), module(x.contiguous())
        assert order_of(out) is Order.FIELDS, module
        if not isinstance(module, ls.nn.FieldDropout):
            torch.testing.assert_close(out, right)
    assert order_of(x + 2 * x) is Order.FIELDS
    joined = _joined(x, innermost(torch.randn(2, 3, 8, 8, 6)))
    assert order_of(joined) is Order.FIELDS
    assert joined.shape == (2, 7, 8, 8, 6)
    assert torch.equal(joined[:, :4], x)
    assert order_of(_joined(x, x.contiguous())) is not Order.FIELDS


@pytest.mark.parametrize("together", [True, False], ids=["innermost", "planes"])
@pytest.mark.parametrize("window", [1, 3])
def test_the_dense_path_on_a_gpu_keeps_the_order_of_memory(together: bool, window: int) -> None:
    x = torch.randn(2, 3, 8, 5, 4, dtype=torch.float64)
    x = (innermost(x) if together else x).requires_grad_()
    kernel = torch.randn(5, 8, 3, 8, window, window, dtype=torch.float64, requires_grad=True)
    choice = Choice(True, (cudnn.PATH,), order=order_of(x))
    found = whole.convolve(x, kernel, ((window, window),) * 8, choice, (1, 1), (0, 0))
    right = torch.nn.functional.conv2d(x.flatten(1, 2), kernel.flatten(2, 3).flatten(0, 1)).unflatten(1, (5, 8))
    assert_same(found, right, (x, kernel), 1e-10)
    assert (order_of(found) is Order.FIELDS) == together


def test_other_devices_and_versions_go_on_without() -> None:
    assert not operators.available(torch.device("cpu"), torch.bfloat16)
    assert not operators.available(torch.device("cpu"), torch.float32)
    with ops.use("hopper"), pytest.raises(ValueError, match="path 'hopper' does not take"):
        layer(3, 5)(torch.randn(4, 3, 8, 7, 6, dtype=torch.float64))


def test_a_checkpointed_network_is_the_network_and_counts_a_batch_once() -> None:
    grids = ls.uniform(ls.SO2(), 4)
    torch.manual_seed(0)
    kept = ls.models.unet(1, 2, grids, widths=(2, 3), kernel="local", n_k=3).double()
    again = ls.models.unet(1, 2, grids, widths=(2, 3), kernel="local", n_k=3, checkpoint=True).double()
    again.load_state_dict(kept.state_dict())
    x = torch.randn(2, 1, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(results(again, x, "auto"), results(kept, x, "auto"), **EXACT)
    for one, right in zip(again.buffers(), kept.buffers(), strict=True):
        assert torch.equal(one, right)
