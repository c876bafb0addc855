"""The GPU's dense convolution, run on the CPU: layouts, padding and gradients against torch's own convolution."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import liespline as ls
from liespline.models.celeba import scale_grid
from liespline.models.kernels import h_basis
from liespline.ops import plan, tables
from liespline.ops.correlate import banded, cudnn, fields, whole

from .path_cases import assert_same

EXACT = {"rtol": 1e-11, "atol": 1e-11}
CASES = {
    "an image": ((3,), (5, 4), 2),
    "more outputs than fit": ((3,), (5, 14), 2),
    "more inputs than fit": ((6, 12), (3, 2), 2),
    "both": ((6, 11), (5, 14), 2),
    "volumes": ((2, 3), (3, 2), 3),
}


@pytest.fixture(autouse=True)
def _memory_comes_without_numbers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is read before it was written is NaN."""
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)  # the lab's trainer says no
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


def drawn(inputs: tuple[int, ...], outputs: tuple[int, int], d: int) -> tuple[Tensor, Tensor]:
    """A feature map, and a kernel in the layout that sampling leaves it in."""
    torch.manual_seed(0)
    x = torch.randn(2, *inputs, *(9, 8, 7)[:d], dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(outputs[0], inputs[0], outputs[1], *(3, 2, 3)[:d], *inputs[1:], dtype=torch.float64)
    kernel = kernel.transpose(1, 2) if len(inputs) == 1 else kernel.movedim((2, -1), (1, 3))
    return x, kernel.requires_grad_()


def truth(x: Tensor, kernel: Tensor, stride: tuple[int, ...], padding: tuple[int, ...]) -> Tensor:
    d = len(stride)
    convolution = F.conv2d if d == 2 else F.conv3d
    weight = kernel.reshape(-1, x[0].numel() // x.shape[-d:].numel(), *kernel.shape[-d:])
    out = convolution(x.reshape(2, -1, *x.shape[-d:]), weight, None, stride, padding)
    return out.reshape(2, *kernel.shape[:2], *out.shape[2:])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "operator"])
def test_layout_and_padding_change_nothing(name: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x, kernel = drawn(*CASES[name])
    stride, padding = (1, 2, 1)[: CASES[name][2]], (1, 0, 1)[: CASES[name][2]]
    if compiled:
        padded = cudnn.pad.op(x, len(stride)).detach().requires_grad_()
        torch.library.opcheck(cudnn.pad.op, (x, len(stride)))
        torch.library.opcheck(cudnn.correlate.op, (padded, kernel, list(stride), list(padding)))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiled)
    for wanted in ((x, kernel), (x,), (kernel,)):
        assert_same(cudnn.convolve(x, kernel, stride, padding), truth(x, kernel, stride, padding), wanted)


def test_gradients_of_gradients_and_vmap() -> None:
    x, kernel = drawn((2,), (2, 3), 2)
    small = x[..., :4, :4].detach().requires_grad_()
    torch.autograd.gradgradcheck(lambda x, k: cudnn.convolve(x, k, (1, 1), (1, 0)), (small, kernel))
    wide = torch.randn(1, 6, 5, 3, 3, dtype=torch.float64, requires_grad=True)  # 30 channels become 32
    taps = torch.randn(2, 13, 6, 5, 2, 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradgradcheck(lambda x, k: cudnn.convolve(x, k, (1, 1), (0, 1)), (wide, taps), fast_mode=True)
    several = torch.stack([x, x + 1]).detach()
    found = torch.func.vmap(lambda one: cudnn.convolve(one, kernel, (1, 2), (0, 1)))(several)
    torch.testing.assert_close(found[1], truth(x + 1, kernel, (1, 2), (0, 1)), **EXACT)


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize(("channels", "wide", "padding"), [(3, 5, 0), (1, 3, 2), (2, 8, 1), (4, 1, 0)])
@pytest.mark.parametrize("d", [2, 3])
def test_neighbours_as_channels_change_nothing(count: int, channels: int, wide: int, padding: int, d: int) -> None:
    stride, border = (1, 2, 1)[-d:], (1, 0, padding)[-d:]
    space = (4, 6, 16 - 2 * padding + wide - 1)[-d:]  # 16 outputs along the last axis
    x = torch.randn(2, channels, *space, dtype=torch.float64, requires_grad=True)
    kernel = torch.randn(3, channels, 4, *(3, 2, wide)[-d:], dtype=torch.float64).transpose(1, 2).requires_grad_()
    right, found = truth(x, kernel, stride, border), cudnn.together(x, kernel, count, stride, border)
    assert_same(found, right, (x, kernel))
    assert found.movedim((1, 2), (-2, -1)).is_contiguous()  # as one convolution would leave it


@pytest.mark.parametrize(
    ("channels", "width", "outputs", "stride", "count"),
    [
        (3, 88, 11 * 12, 1, 4),
        (1, 28, 16 * 16, 1, 8),
        (3, 90, 80, 1, 2),
        (3, 88, 40, 1, 4),
        (3, 89, 132, 1, 1),  # 85 outputs
        (3, 88, 132, 2, 1),
        (20, 88, 132, 1, 1),
        (3, 88, 17, 1, 1),  # 68 would be padded
    ],
)
def test_how_many_neighbours(channels: int, width: int, outputs: int, stride: int, count: int) -> None:
    x, kernel = torch.empty(1, channels, 9, width), torch.empty(outputs, 1, channels, 5, 5)
    assert cudnn._neighbours(x, kernel, (1, stride), (0, 0)) == count


def test_what_was_kept_in_evaluation_serves_training() -> None:
    layer = ls.GConv(2, 2, 5, ls.uniform(ls.SO2(), 4))
    with torch.inference_mode():
        samples = plan.kept(layer.plan, "key", lambda: whole.outer(*layer.samples(), True))
    (layer.weight.flatten(2).flatten(0, 1) @ samples).sum().backward()
    assert layer.weight.grad is not None


def test_nothing_is_kept_from_one_precision_to_the_next() -> None:
    layer = ls.GConv(2, 2, 5, ls.uniform(ls.SO2(), 4))
    for dtype in (torch.float32, torch.float64):
        layer.to(dtype)
        (part,) = layer.plan.parts
        blocks = fields.blocks(layer.weight, *layer.samples(), layer.plan, part, 1, banded.PATH, True)
        assert blocks.dtype == dtype


def test_samples_that_train_are_never_kept() -> None:
    # Without gradients, as in evaluation, nothing about the samples tells that they will move.
    grid = ls.uniform(ls.SO2(), 4)
    layer = ls.GConv(1, 1, 5, grid, x_basis=ls.SplineBasis(ls.disc(3), trainable=True))
    assert not layer.plan.fixed
    x = torch.randn(1, 1, 4, 6, 6)
    with torch.no_grad():
        before = layer(x)
        layer.x_centres.add_(0.3)
        assert not torch.allclose(layer(x), before)
    assert ls.GConv(1, 1, 5, grid).plan.fixed
    assert ls.GConv(1, 1, 5, grid, h_basis=ls.SplineBasis(grid, trainable=True)).plan is None


def test_a_scale_reads_its_neighbours_as_a_view() -> None:
    """Splines on the grid overlap three scales: the five elements read seven mixed fields, three in a row each."""
    grid = scale_grid(5)
    layer = ls.GConv(1, 1, 5, grid, h_basis=h_basis(grid, "local", 3))
    tables = [part.tables[0] for part in layer.plan.parts]
    assert [table.start for table in tables] == [0, 1, 2, 3, 4]
    x = torch.randn(1, 2, 7, 4, 4)
    for table in tables:
        assert torch.equal(banded.picked(x, table), x[:, :, table.fields[0]])
        apart = table._replace(start=None)
        assert torch.equal(banded.picked(x, apart), x[:, :, table.fields[0]])


def test_only_neighbours_are_a_view() -> None:
    reads = torch.tensor([[0, 1], [0, 2], [2, 3]])
    assert [tables.table_of(line[None], 4).start for line in reads] == [0, None, 2]
    assert tables.table_of(reads, 4).start is None  # several groups
