"""The Triton kernels in Triton's interpreter, without a GPU; `test_versions.py` runs this in its own process."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

import liespline as ls
from liespline import functional, ops
from liespline.ops import trust
from liespline.ops.correlate import triton, triton_kernels
from liespline.ops.depthwise import hopper_kernels as depthwise_kernels
from liespline.ops.norm import fused as norm
from liespline.ops.norm import kernels as norm_kernels

from .path_cases import Case, assert_same, banded_samples, cases, naive

LAYOUTS = ["planes", "channels innermost", "elements innermost", "with gaps", "fields innermost"]


@pytest.fixture(autouse=True, scope="module")
def _memory_comes_without_numbers() -> Iterator[None]:
    """What is read before it was written is NaN."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.empty(3).isnan().all()
    yield
    torch.use_deterministic_algorithms(False)


@settings(deadline=None, max_examples=20)
@given(cases(most=19))
def test_interpreted_kernels_are_the_definition(case: Case) -> None:
    tensors = case.tensors[:3]
    for tensor in tensors:
        tensor.requires_grad_()
    truth = naive(case)
    plan = ops.plan_of(case.h_samples, case.sizes)
    with ops.use("triton"):
        found = functional.correlate(*case.tensors, **case.options, plan=plan)
    assert_same(found, truth, tensors, 1e-10)


def test_operators_follow_torch_rules() -> None:
    # Schema, fake tensors, autograd registration and the traced graph, as torch itself checks them.
    plan = ops.plan_of(banded_samples(4, 4, 2, 1, cyclic=True), ((3, 3),) * 4)
    table = plan.parts[0].tables[0]
    x = torch.randn(1, 4, 1, 5, 6, 8, dtype=torch.float64, requires_grad=True)
    blocks = torch.randn(4, 2, 1, 3, 3, 8, 8, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(triton.correlate.op, (x, blocks, *table[:5], [1, 1, 2], [0, 1, 0]))


def test_gradients_lie_in_memory_as_a_compiler_is_told() -> None:
    plan = ops.plan_of(banded_samples(4, 4, 2, 1, cyclic=True), ((3, 3),) * 4)
    table = plan.parts[0].tables[0]
    x, grad = torch.randn(1, 4, 1, 5, 6, 6), torch.randn(1, 4, 1, 3, 4, 5)
    blocks = torch.randn(4, 2, 1, 3, 3, 6, 5)
    calls = (
        (triton._weight_gradient.op, (x, grad, table.fields, [1, 3, 3], [1, 1, 1], [0, 0, 0])),
        (triton._input_gradient.op, (grad, blocks, *table[2:5], [1, 5, 6], [1, 1, 1], [0, 0, 0])),
    )
    for operator, arguments in calls:
        found = operator(*arguments)
        with FakeTensorMode() as mode:
            told = operator(*(mode.from_tensor(a) if isinstance(a, torch.Tensor) else a for a in arguments))
        assert (found.shape, found.stride()) == (told.shape, told.stride())


def small(batch: int) -> tuple[Case, ops.Plan]:
    torch.manual_seed(0)
    case = Case(
        x=torch.randn(batch, 2, 3, 4, dtype=torch.float64, requires_grad=True),
        weight=torch.randn(2, 2, 2, 2, dtype=torch.float64, requires_grad=True),
        x_samples=torch.randn(3, 1, 3, 2, dtype=torch.float64),
        h_samples=banded_samples(3, 3, 2, 1, cyclic=True),
        sizes=((3,),) * 3,
        stride=(1,),
        padding=(1,),
    )
    return case, ops.plan_of(case.h_samples, case.sizes)


def test_gradients_of_gradients_of_the_correlation() -> None:
    case, plan = small(1)

    def correlate(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        with ops.use("triton"):
            return functional.correlate(x, weight, case.x_samples, case.h_samples, **case.options, plan=plan)

    torch.autograd.gradgradcheck(correlate, (case.x, case.weight), fast_mode=True)


class Spoilt:
    """A kernel whose results are a tenth too large."""

    def __init__(self, kernel: Any, result: str) -> None:
        self.kernel, self.result = kernel, result

    def __getitem__(self, programs: tuple[int, ...]) -> Callable[..., None]:
        def launch(**options: Any) -> None:
            self.kernel[programs](**options)
            options[self.result].mul_(1.1)

        return launch


@pytest.mark.parametrize(
    ("kind", "module", "kernel", "result"),
    [
        ("triton", triton_kernels, "correlate", "out"),
        ("triton", triton_kernels, "correlate_weight", "partial"),
        ("depthwise", depthwise_kernels, "correlate_weight", "partial"),
        ("norm", norm_kernels, "apply", "out"),
        ("norm", norm_kernels, "gradient", "out"),
    ],
)
def test_a_wrong_kernel_steps_aside_with_one_warning(
    kind: str, module: Any, kernel: str, result: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "installed", lambda: (4, 0))  # which nobody has seen
    x, cpu = torch.randn(3, 4, 2, 5, 5, dtype=torch.float64), torch.device("cpu")
    right = F.batch_norm(x, None, None, training=True)
    try:
        trust._wrong.cache_clear()
        assert trust.off(kind, cpu, torch.float64) == ""
        monkeypatch.setattr(module, kernel, Spoilt(getattr(module, kernel), result))
        trust._wrong.cache_clear()
        with pytest.warns(UserWarning, match=r"kernels are off: with Triton 4\.0.* are off by 0\.1 of") as said:
            first = trust.off(kind, cpu, torch.float64)
        assert "they never ran with" in first
        assert trust.off(kind, cpu, torch.float64) == first  # and warns no more, for a warning is an error here
        assert len(said) == 1
        torch.testing.assert_close(ls.nn.BatchNorm(4).double()(x), right)
        # What ran on a GPU with a version is not compared again.
        monkeypatch.setattr(trust, "installed", lambda: trust.RAN[0])
        trust._wrong.cache_clear()
        assert trust.off(kind, cpu, torch.float64) == ""
    finally:
        trust._wrong.cache_clear()


def test_a_kernel_that_does_not_compile_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(norm_kernels, "apply")
    try:
        trust._wrong.cache_clear()
        with pytest.warns(UserWarning, match="norm kernels are off: .*AttributeError"):
            trust.off("norm", torch.device("cpu"), torch.float64)
    finally:
        trust._wrong.cache_clear()


def test_an_empty_batch() -> None:
    case, plan = small(0)
    with ops.use("triton"):
        out = functional.correlate(*case.tensors, **case.options, plan=plan)
    assert out.shape == (0, 2, 3, 4)
    x_gradient, weight_gradient = torch.autograd.grad(out.sum(), (case.x, case.weight))
    assert x_gradient.shape == case.x.shape
    assert not weight_gradient.any()


def test_the_fused_norm_under_vmap_and_in_forward_mode() -> None:
    norm = ls.nn.NormReLU(3, track_running_stats=False).double()
    x = torch.randn(2, 4, 3, 2, 5, 5, dtype=torch.float64)
    each = torch.stack([norm(one) for one in x])
    torch.testing.assert_close(torch.vmap(norm)(x), each, rtol=1e-9, atol=1e-9)
    step = 1e-6
    _, found = torch.func.jvp(norm, (x[0],), (x[1],))
    torch.testing.assert_close(
        found, (norm(x[0] + step * x[1]) - norm(x[0] - step * x[1])) / (2 * step), atol=1e-4, rtol=0
    )


def test_the_kernels_refuse_windows_that_leave_the_registers() -> None:
    plan = ops.plan_of(banded_samples(2, 2, 1, 1, cyclic=True), ((1, 21),) * 2)
    x, weight = torch.randn(1, 1, 2, 1, 30), torch.randn(1, 1, 1, 1)
    samples = torch.randn(2, 1, 1, 21, 1), torch.ones(2, 1, 2, 1)
    with ops.use("triton"), pytest.raises(ValueError, match=r"does not take torch\.float32 on this device"):
        functional.correlate(x, weight, *samples, sizes=((1, 21),) * 2, stride=(1, 1), padding=(0, 0), plan=plan)


@pytest.mark.parametrize("momentum", [0.1, 0.3, None])
def test_the_fused_norm_remembers_what_torch_s_own_does(momentum: float | None) -> None:
    ours = ls.nn.BatchNorm(3, momentum=momentum).double()
    right = torch.nn.BatchNorm3d(3, momentum=momentum).double()
    for scale in (1.0, 5.0):
        x = scale * torch.randn(2, 3, 4, 2, 3, dtype=torch.float64) - scale
        assert ours.can_fuse(x)
        ours(x)
        right(x)
    for name, value in right.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=1e-6, atol=1e-6)  # the rate is a float32


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(3, 5, 4, 6, 7), (2, 11, 12, 3, 3), (64, 3, 1, 1, 1)])
def test_interpreted_batch_norm_is_torch_s_own(layout: str, shape: tuple[int, ...]) -> None:
    x = _laid_out(3 * torch.randn(shape, dtype=torch.float64) + 1e4, layout).requires_grad_()
    direction = _laid_out(torch.randn(shape, dtype=torch.float64), layout)
    theirs, ours = torch.nn.BatchNorm3d(shape[1]).double(), ls.nn.BatchNorm(shape[1]).double()
    torch.nn.init.normal_(theirs.weight)
    ours.load_state_dict(theirs.state_dict())
    assert triton.available(x.device, x.dtype)
    found, right = ours(x), theirs(x)
    torch.testing.assert_close(found, right, rtol=1e-8, atol=1e-8)
    assert layout != "fields innermost" or shape[2] == 1 or found.stride() == x.stride()
    leaves = ([x, *ours.parameters()], [x, *theirs.parameters()])
    gradients = (torch.autograd.grad(y, p, direction) for y, p in zip((found, right), leaves, strict=True))
    torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-8)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(ours.state_dict()[name], value, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("activation", "pool"), [("relu", 1), ("relu", 2), ("relu", 3), ("silu", 2), ("gelu", 3)])
def test_interpreted_norm_activation_and_pooling_are_torch_s_own(layout: str, activation: str, pool: int) -> None:
    x = _laid_out(torch.randn(3, 5, 4, 6, 12, dtype=torch.float64), layout).requires_grad_()
    fused = ls.nn.NormAct(5, activation, pool).double()
    torch.nn.init.normal_(fused[0].weight)
    pooled = F.max_pool3d(F.batch_norm(x, None, None, *fused.parameters(), True), (1, pool, pool))
    found, right = fused(x), getattr(F, activation)(pooled)
    assert_same(found, right, [x, *fused.parameters()], 1e-8)


def test_pooling_that_does_not_divide_and_values_that_are_not_finite() -> None:
    x = torch.randn(2, 3, 4, 7, 6, dtype=torch.float64)
    fused = ls.nn.NormReLU(3, 2).double()
    right = F.max_pool3d(F.relu(F.batch_norm(x, None, None, training=True)), (1, 2, 2))
    torch.testing.assert_close(fused(x), right)
    x[1, 1, 2, 3, 4] = torch.nan
    whole = fused(x[:, :, :, :6])
    assert whole[:, 1].isnan().all()
    assert whole[:, [0, 2]].isfinite().all()


@pytest.mark.parametrize("child", [torch.nn.GELU("tanh"), ls.nn.MaxPool(2, stride=1)], ids=["activation", "pool"])
def test_an_exchanged_child_is_not_left_out(child: torch.nn.Module) -> None:
    layer, x = ls.nn.NormReLU(3, 2).double(), torch.randn(2, 3, 4, 6, 6, dtype=torch.float64)
    layer[1 if isinstance(child, ls.nn.MaxPool) else 2] = child
    right = layer[2](layer[1](F.batch_norm(x, None, None, training=True)))
    torch.testing.assert_close(layer(x), right)


def test_the_norm_follows_torch_rules() -> None:
    x = torch.randn(2, 3, 4, 4, 4, dtype=torch.float64).movedim(1, -1).contiguous().movedim(-1, 1).requires_grad_()
    weight, bias = torch.ones(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    torch.library.opcheck(norm.operator.op, (x, weight.requires_grad_(), bias.requires_grad_(), 1e-5, "silu", 2))


@pytest.mark.parametrize(("activation", "pool"), [("", 1), ("", 2), ("silu", 1), ("gelu", 2)])
def test_gradients_of_gradients(activation: str, pool: int) -> None:
    x, weight, bias = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((2, 2, 1, 2, 4), (2,), (2,)))
    for normalise in (norm.normalise, norm.operator.op):
        torch.autograd.gradgradcheck(
            lambda *t, f=normalise: f(*t, 1e-3, activation, pool)[0], (x, weight, bias), fast_mode=True
        )


def _laid_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    if layout == "channels innermost":
        return x.movedim(1, -1).contiguous().movedim(-1, 1)
    if layout == "planes":
        return x
    if layout == "fields innermost":
        return x.movedim((2, 1), (-2, -1)).contiguous().movedim((-2, -1), (2, 1))
    rows = x.movedim((1, 2), (-2, -1)).flatten(-2)
    gap = 4 if layout == "with gaps" else 0
    rows = torch.nn.functional.pad(rows, (0, gap), value=torch.nan)[..., : rows.shape[-1]]
    return rows.unflatten(-1, x.shape[1:3]).movedim((-2, -1), (1, 2))
