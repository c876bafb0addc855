"""The path for Hopper GPUs as far as it goes without one: what is chosen, how work is cut, and what lies where.

The launches are played by torch's own operators; the kernels themselves are checked by `reliability/gpu_hopper.py`, and
what brings weights into their order by `interpreted_hopper.py`.
"""

from __future__ import annotations

import itertools
import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import liespline as ls
from liespline import paths
from liespline.hopper import operators, tiles
from liespline.models.kernels import h_basis
from liespline.models.unet import _joined
from liespline.paths import decide, dense

SIXTEEN = ls.uniform(ls.SO2(), 16)
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
        return operators._plain(x, kernel, list(lines), padding).contiguous()

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

    module = types.ModuleType("liespline.hopper.launch")
    module.__dict__.update(forward=forward, input_gradient=input_gradient, weight_gradient=weight_gradient)
    monkeypatch.setitem(sys.modules, "liespline.hopper.launch", module)
    monkeypatch.setattr("liespline.hopper.launch", module, raising=False)
    monkeypatch.setattr(operators, "available", lambda device, dtype: True)
    return seen


def layer(channels: int, outputs: int, degree: int = 1, **options: Any) -> ls.GConv:
    torch.manual_seed(0)
    grid = ls.uniform(ls.SO2(), 8)
    basis = h_basis(grid, "local", 3, degree=degree)
    return ls.GConv(channels, outputs, 5, grid, h_basis=basis, **options).double()


def results(module: nn.Module, x: Tensor, path: str) -> list[Tensor]:
    x = x.detach().requires_grad_()
    with paths.use(path):
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
    for one, right in zip(found, results(module, x, "dense"), strict=True):
        torch.testing.assert_close(one, right, **EXACT)
    assert operators.innermost(found[0])


def test_operators_follow_torch_rules_in_every_order_of_memory(launches: list[str]) -> None:
    x = torch.randn(4, 1, 7, 6, 8, 3, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(5, 3, 8, 1, 5, 5, 2, dtype=torch.float64).movedim((2, -1), (1, 3)).requires_grad_()
    lines = [f for a in range(8) for f in (a, (a + 1) % 8 if a else -1)]
    table = operators._tables(tuple(lines), 8, 8, 3, 5, x.device)
    for order in (kernel, kernel.detach().contiguous().requires_grad_()):
        torch.library.opcheck(operators.correlate, (x, order, table, lines, [0, 1, 4]))


def test_a_compiled_layer_and_gradients_of_gradients(launches: list[str]) -> None:
    module, x = layer(3, 5, 2), innermost(torch.randn(4, 3, 8, 7, 6, dtype=torch.float64))
    torch.compiler.reset()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    x.requires_grad_()
    with paths.use("hopper"):
        one, right = compiled(x), module(x)
        torch.testing.assert_close(one, right, **EXACT)
        assert one.stride() == right.stride()
        gradients = (torch.autograd.grad(y.sum(), module.weight)[0] for y in (one, right))
        torch.testing.assert_close(*gradients, **EXACT)
        (slope,) = torch.autograd.grad(module(x).square().sum(), module.weight, create_graph=True)
        (again,) = torch.autograd.grad(slope.square().sum(), module.weight)
    with paths.use("dense"):
        (slope,) = torch.autograd.grad(module(x).square().sum(), module.weight, create_graph=True)
        (truth,) = torch.autograd.grad(slope.square().sum(), module.weight)
    torch.testing.assert_close(again, truth, rtol=1e-9, atol=1e-6)


def test_what_lies_between_layers_keeps_fields_together() -> None:
    x = innermost(torch.randn(2, 4, 8, 8, 6))
    between = [ls.nn.MaxPool(2), ls.nn.Downsample(2), ls.nn.Upsample(2), nn.ReLU(), ls.nn.FieldDropout(0.5), nn.SiLU()]
    for module in between:
        out, right = module(x), module(x.contiguous())
        assert operators.innermost(out), module
        if not isinstance(module, ls.nn.FieldDropout):
            torch.testing.assert_close(out, right)
    assert operators.innermost(x + 2 * x)
    joined = _joined(x, innermost(torch.randn(2, 3, 8, 8, 6)))
    assert operators.innermost(joined)
    assert joined.shape == (2, 7, 8, 8, 6)
    assert torch.equal(joined[:, :4], x)
    assert not operators.innermost(_joined(x, x.contiguous()))


@pytest.mark.parametrize("together", [True, False], ids=["innermost", "planes"])
@pytest.mark.parametrize("window", [1, 3])
def test_the_dense_path_on_a_gpu_keeps_the_order_of_memory(together: bool, window: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 5, 4, dtype=torch.float64)
    x = (innermost(x) if together else x).requires_grad_()
    kernel = torch.randn(5, 8, 3, 8, window, window, dtype=torch.float64, requires_grad=True)
    found = dense.convolve(x, kernel, ((window, window),) * 8, ["cudnn"], (1, 1), (0, 0))
    right = torch.nn.functional.conv2d(x.flatten(1, 2), kernel.flatten(2, 3).flatten(0, 1)).unflatten(1, (5, 8))
    torch.testing.assert_close(found, right, **EXACT)
    assert operators.innermost(found) == together
    gradients = [torch.autograd.grad(y, (x, kernel), torch.ones_like(y)) for y in (found, right)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, **EXACT)


def test_one_window_is_chosen_where_it_pays() -> None:
    def chosen(channels: int, **changes: Any) -> decide.Choice:
        own = ls.GConv(channels, channels, 5, SIXTEEN, h_basis=h_basis(SIXTEEN, "local", 3, degree=1))
        question = decide.Question(
            "auto", True, torch.bfloat16, True, 64, (channels, 16), channels, (42, 42), own.window.sizes,
            (1, 1), (0, 0), False, False, True, True,
        )  # fmt: skip
        return decide._decide(question._replace(**changes), own.plan)

    ours, whole = decide.Choice(False, ("hopper",)), decide.Choice(True, ("cudnn",))
    for channels in (16, 23, 32, 64):
        assert chosen(channels) == ours
    assert chosen(32, innermost=False) == ours
    assert chosen(16, batch=48) == ours
    assert chosen(16, batch=48, innermost=False) == whole  # a copy first does not pay
    assert chosen(23, space=(5, 5)) == whole  # one sample: seven of eight columns would be wasted
    assert chosen(4) == whole
    assert chosen(23, hopper=False) != ours
    for change in ({"stride": (2, 1)}, {"batch": 3}, {"transformed": True}, {"padding": (5, 0)}):
        assert chosen(32, **change) != ours
        with pytest.raises(ValueError, match="path 'hopper' does not take"):
            chosen(32, forced="hopper", triton=False, **change)
    assert chosen(65) != ours


def test_volumes_are_taken_as_far_as_they_were_shown_right() -> None:
    def cost(channels: int, outputs: int, window: int) -> float:
        shape = 2, (24, 24, 24), (window,) * 3, (1, 1, 1), (0, 0, 0)
        return tiles.terms(*shape, 24, 24, channels, outputs, 7, 7.0)

    assert max(cost(16, 16, 5), cost(24, 24, 3), cost(32, 24, 5)) < float("inf")
    assert min(cost(8, 16, 3), cost(16, 16, 3), cost(16, 8, 5), cost(16, 24, 5)) == float("inf")


@pytest.mark.parametrize(("channels", "elements"), [(16, 16), (23, 16), (24, 8), (5, 8), (64, 16), (40, 12)])
def test_spans_cover_each_channel_once(channels: int, elements: int) -> None:
    lines = (*(((a - 1) % elements, a, (a + 1) % elements) for a in range(elements - 1)), (0, -1, 2))
    outputs = channels + channels % 2
    found = tiles.covers(tuple(itertools.chain(*lines)), elements, elements, channels, outputs)
    blocks = [(a, t, f) for a, line in enumerate(lines) for t, f in enumerate(line) if f >= 0]
    passes = (found.forward, channels, False), (found.weight, channels, False), (found.back, outputs, True)
    for cover, count, back in passes:
        for here, (starts, entries) in enumerate(zip(cover.starts, cover.entries, strict=True)):
            assert len(entries) == len(starts) * cover.width
            assert not any(start % 16 for start in starts)  # the copy engine starts at multiples of 8
            read = [
                (entry, starts[place // cover.width] + place % cover.width)
                for place, entry in enumerate(entries)
                if entry >= 0
            ]
            own = [((3 * a + t), a if back else f) for a, t, f in blocks if here == (f if back else a)]
            assert sorted(read) == sorted((b * count + c, s * count + c) for b, s in own for c in range(count))


def test_tiles_fit_the_device() -> None:
    sides, counts = ((1, 42, 42), (1, 5, 3), (1, 1, 1), (20, 20, 20), (7, 9, 8)), (1, 4, 9, 64, 256)
    for size, batch, taps, outputs, width in itertools.product(sides, counts, (2, 3, 5, 7), (5, 16, 23, 64), (16, 32)):
        n = tiles.padded(outputs)
        found = tiles.tile(batch, size, taps, 16, outputs, width)
        crowd, rows = found.planes * found.images, found.columns * found.planes * found.images
        stage = ((found.columns + taps - 1) * crowd + taps * found.lines * n) * width * 2
        assert crowd % 8 == 0
        assert size[0] > 1 or found.planes == 1
        assert rows * found.lines * n * found.each <= 512 * 64  # sums, in the registers of a multiprocessor
        assert found.stages >= 2
        assert found.each * (found.stages * stage + 1024) <= 227 * 1024
        n = tiles.aligned(outputs)
        if taps * 128 * n <= 40_960:
            weight = tiles.weight_tile(batch, size[0], size[2], (1, 5, taps), 16, 3, width, outputs)
            crowd = weight.planes * weight.images
            assert crowd % 8 == 0
            assert crowd * weight.columns == 64
            stage = (64 * weight.blocks * width + (weight.columns + taps - 1) * crowd * n) * 2
            assert weight.stages >= 2
            assert weight.stages * stage + 1024 <= 227 * 1024


def test_other_devices_and_versions_go_on_without() -> None:
    assert not operators.available(torch.device("cpu"), torch.bfloat16)
    assert not operators.available(torch.device("cpu"), torch.float32)
    with paths.use("hopper"), pytest.raises(ValueError, match="path 'hopper' does not take"):
        layer(3, 5)(torch.randn(4, 3, 8, 7, 6, dtype=torch.float64))


def test_a_checkpointed_network_is_the_network_and_counts_a_batch_once() -> None:
    grids = ls.uniform(ls.SO2(), 4)
    torch.manual_seed(0)
    kept = ls.models.unet(1, 2, grids, widths=(2, 3), kernel="local", n_k=3).double()
    again = ls.models.unet(1, 2, grids, widths=(2, 3), kernel="local", n_k=3, checkpoint=True).double()
    again.load_state_dict(kept.state_dict())
    x = torch.randn(2, 1, 9, 8, dtype=torch.float64)
    for one, right in zip(results(again, x, "auto"), results(kept, x, "auto"), strict=True):
        torch.testing.assert_close(one, right, **EXACT)
    for one, right in zip(again.buffers(), kept.buffers(), strict=True):
        assert torch.equal(one, right)
