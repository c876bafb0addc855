"""Every path against the sum written out tap by tap, values and gradients, in float64."""

import contextlib

import pytest
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

from liespline import functional, ops
from liespline.ops import choose
from liespline.ops.correlate import banded, fields, separable
from liespline.ops.path import Choice

from .path_cases import Case, assert_same, banded_samples, cases, naive


def assert_same_layer(case: Case, compute, by: int = 4) -> None:
    """Values of `compute(case)`, and its gradients by the first `by` tensors, equal those of the naive sum."""
    tensors = case.tensors[:by]
    for tensor in tensors:
        tensor.requires_grad_()
    assert_same(compute(case), naive(case), tensors, 1e-10)


@settings(deadline=None, max_examples=60)
@given(cases(quotient=True))
def test_dense_is_the_definition(case: Case) -> None:
    assert_same_layer(case, lambda c: functional.correlate(*c.tensors, **c.options))


@settings(deadline=None, max_examples=120)
@given(cases(), st.data())
def test_every_route_is_the_definition(case: Case, data: st.DataObject) -> None:
    plan = ops.plan_of(case.h_samples, case.sizes)
    group = data.draw(st.integers(1, len(plan.parts[0].tables)))
    way = Choice(False, (banded.PATH,) * len(plan.parts), group)
    assert_same_layer(case, lambda c: by(c, plan, way), by=3)
    assert_same_layer(case, lambda c: by(c, plan, way, keep=True), by=2)  # what is kept of the samples is not trained


@settings(deadline=None, max_examples=60)
@given(cases(low_rank=True), st.data())
def test_separable_is_the_definition(case: Case, data: st.DataObject) -> None:
    plan = ops.plan_of(case.h_samples, case.sizes, case.x_samples)
    group = data.draw(st.integers(1, len(plan.parts[0].tables)))
    way = Choice(False, tuple(separable.PATH if part.rank else banded.PATH for part in plan.parts), group)
    event(f"{way.methods.count('separable')} separable parts")
    assert_same_layer(case, lambda c: by(c, plan, way, keep=data.draw(st.booleans())), by=2)


def by(case: Case, plan: ops.Plan, way: Choice, keep: bool = False) -> torch.Tensor:
    options = {"stride": case.stride, "padding": case.padding, "keep": keep}
    return fields.correlate(*case.tensors, plan=plan, choice=way, **options)


def aligned_case(reach: int, elements: int = 8, n_k: int = 3, channels: int = 4) -> Case:
    torch.manual_seed(0)
    return Case(
        x=torch.randn(2, channels, elements, 6, 5, dtype=torch.float64),
        weight=torch.randn(channels, channels, 4, n_k, dtype=torch.float64),
        x_samples=torch.randn(elements, 1, 3, 3, 4, dtype=torch.float64),
        h_samples=banded_samples(elements, elements, n_k, reach, cyclic=True),
        sizes=((3, 3),) * elements,
        stride=(1, 1),
        padding=(1, 1),
    )


def test_plan_finds_the_band_and_the_repeated_rows() -> None:
    plan = ops.plan_of(aligned_case(reach=1).h_samples, ((3, 3),) * 8)
    assert plan.rows is None  # a gather: N_k fields for each element, no mixing needed
    assert widths(plan) == [3, 4]  # two neighbours share two of their three fields
    plan = ops.plan_of(aligned_case(reach=3).h_samples, ((3, 3),) * 8)
    assert widths(plan) == [3, 4]
    assert plan.fields == len(plan.rows) == 8  # 24 rows, of which 8 differ


def widths(plan: ops.Plan) -> list[int]:
    (part,) = plan.parts
    return [table.fields.shape[1] for table in part.tables]


def test_plan_drops_rows_that_are_zero_or_rounding() -> None:
    samples = banded_samples(5, 5, 3, 1, cyclic=False)  # the last elements reach past the grid
    noisy = samples + 1e-16 * torch.randn_like(samples)
    plan = ops.plan_of(noisy, ((3,),) * 5)
    assert plan.parts[0].tables[0].counts.tolist() == [3, 3, 3, 2, 1]
    nothing = ops.plan_of(torch.zeros(2, 1, 3, 2), ((3,),) * 2)
    assert nothing.labels.max() == -1


@pytest.mark.parametrize(
    ("channels", "elements", "n_k", "name"),
    [(16, 16, 3, "banded"), (10, 16, 3, "banded"), (16, 8, 8, "dense"), (2, 4, 3, "dense")],
)
def test_the_cheaper_path_is_chosen(channels: int, elements: int, n_k: int, name: str) -> None:
    assert chosen_for(aligned_case(reach=1, elements=elements, n_k=n_k, channels=channels)) == (name,)


def chosen_for(case: Case) -> tuple[str, ...]:
    plan = ops.plan_of(case.h_samples, case.sizes, case.x_samples)
    chosen = choose.choose(case.x, case.weight, case.sizes, (1, 1), (0, 0), plan)
    return ("dense",) if chosen.whole else chosen.methods


def test_overlapping_splines_are_mixed_first() -> None:
    case = aligned_case(reach=3, elements=16, channels=16)
    plan = ops.plan_of(case.h_samples, case.sizes)
    chosen = choose.choose(case.x, case.weight, case.sizes, (1, 1), (0, 0), plan)
    assert not chosen.whole
    assert plan.rows is not None
    assert chosen.group == 1


def test_wide_windows_of_low_rank_are_separated() -> None:
    case = scaled_case()
    assert chosen_for(case) == ("banded", "separable", "separable")
    case.x_samples = torch.randn_like(case.x_samples)  # full rank
    assert chosen_for(case) == ("banded",) * 3


def scaled_case(channels: int = 16, sizes: tuple[int, ...] = (3, 11, 21)) -> Case:
    """Three scales of one product basis, 3 × 3 centres, in windows that grow with them."""
    torch.manual_seed(0)
    k = sizes[-1]
    x_samples = torch.zeros(3, 1, k, k, 3, 3, dtype=torch.float64)
    for a, size in enumerate(sizes):
        along, own = torch.randn(2, size, 3, dtype=torch.float64), slice((k - size) // 2, (k + size) // 2)
        x_samples[a, 0, own, own] = along[0][:, None, :, None] * along[1][None, :, None, :]
    return Case(
        x=torch.randn(1, channels, 3, 30, 30, dtype=torch.float64),
        weight=torch.randn(channels, channels, 9, 2, dtype=torch.float64),
        x_samples=x_samples.flatten(-2),
        h_samples=banded_samples(3, 3, 2, 1, cyclic=False),
        sizes=tuple((size, size) for size in sizes),
        stride=(1, 1),
        padding=(k // 2, k // 2),
    )


def test_a_path_can_be_forced_and_is_given_back() -> None:
    case = aligned_case(reach=1, channels=2, elements=4)
    with ops.use("banded"):
        assert chosen_for(case) == ("banded",)
        with ops.use("dense"):
            assert chosen_for(case) == ("dense",)
        assert chosen_for(case) == ("banded",)
    with contextlib.suppress(RuntimeError), ops.use("banded"):
        raise RuntimeError
    assert chosen_for(case) == ("dense",)
    with ops.use("separable"):
        assert chosen_for(scaled_case()) == ("banded", "separable", "separable")  # 3 centres in 3 samples
        assert chosen_for(case) == ("banded",)


@pytest.mark.parametrize("name", ["dense", "banded", "separable"])
def test_compiled_whole(name: str) -> None:
    case = scaled_case(2, (3, 5, 9)) if name == "separable" else aligned_case(reach=2)
    plan = ops.plan_of(case.h_samples, case.sizes, case.x_samples)
    case.weight.requires_grad_()
    with ops.use(name):
        step = torch.compile(
            lambda x, w: functional.correlate(x, w, *case.tensors[2:], **case.options, plan=plan),
            fullgraph=True,
            backend="aot_eager",
        )
        assert_same(step(case.x, case.weight), naive(case), [case.weight], 1e-10)


@pytest.mark.parametrize("name", ["dense", "banded"])
def test_autocast_builds_kernels_in_float32(name: str) -> None:
    case = aligned_case(reach=2)
    # Coefficients that cancel: in bfloat16 the sum over j would be lost, in float32 it is exact.
    weight = case.weight.float()
    weight[..., 1] = -weight[..., 0] * (1 + 2**-12)
    weight[..., 2] = 0
    h_samples = torch.ones_like(case.h_samples).float()
    plan = ops.plan_of(h_samples, case.sizes)
    x, x_samples = case.x.float(), case.x_samples.float()
    exact = naive(Case(x.double(), weight.double(), x_samples.double(), h_samples.double(), *case.options.values()))
    weight.requires_grad_()
    with ops.use(name), torch.autocast("cpu", dtype=torch.bfloat16):
        found = functional.correlate(x, weight, x_samples, h_samples, **case.options, plan=plan)
    assert found.dtype == torch.bfloat16
    assert (found.double() - exact).norm() / exact.norm() < 2e-2
    found.float().sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
