"""Every path against the sum written out tap by tap, values and gradients, in float64."""

import contextlib
from dataclasses import replace

import pytest
import torch
from hypothesis import event, given, settings
from hypothesis import strategies as st

from liespline import paths
from liespline.paths import choice, cost, factored

from .path_cases import Case, banded_samples, cases, naive

EXACT = {"rtol": 1e-10, "atol": 1e-10}


def assert_same_layer(case: Case, compute, by: int = 4) -> None:
    """Values of `compute(case)`, and its gradients by the first `by` tensors, equal those of the naive sum."""
    tensors = case.tensors[:by]
    for tensor in tensors:
        tensor.requires_grad_()
    truth, found = naive(case), compute(case)
    torch.testing.assert_close(found, truth, **EXACT)
    direction = torch.randn(truth.shape, dtype=truth.dtype)
    expected = torch.autograd.grad(truth, tensors, direction)
    for gradient, right in zip(torch.autograd.grad(found, tensors, direction), expected, strict=True):
        torch.testing.assert_close(gradient, right, **EXACT)


@settings(deadline=None, max_examples=60)
@given(cases(quotient=True))
def test_dense_is_the_definition(case: Case) -> None:
    assert_same_layer(case, lambda c: paths.correlate(*c.tensors, **c.options))


@settings(deadline=None, max_examples=120)
@given(cases(), st.data())
def test_every_route_is_the_definition(case: Case, data: st.DataObject) -> None:
    # Only the plan of samples that train keeps their zeros and repetitions, which their gradient needs.
    trained = data.draw(st.booleans())
    plan = paths.Plan(case.h_samples.clone().requires_grad_(trained), case.sizes)
    route = data.draw(st.sampled_from(plan.routes))
    way = choice.Choice(route, ("banded",) * len(plan.windows))
    assert_same_layer(case, lambda c: by(c, plan, way), by=4 if trained else 3)


@settings(deadline=None, max_examples=60)
@given(cases(low_rank=True), st.data())
def test_separable_is_the_definition(case: Case, data: st.DataObject) -> None:
    plan = paths.Plan(case.h_samples, case.sizes, case.x_samples)
    route = data.draw(st.sampled_from(plan.routes))
    way = choice.Choice(route, tuple("separable" if rank else "banded" for rank in plan.ranks))
    event(f"{way.methods.count('separable')} separable parts")
    assert_same_layer(case, lambda c: by(c, plan, way), by=2)


def by(case: Case, plan: paths.Plan, way: choice.Choice) -> torch.Tensor:
    return factored.correlate(*case.tensors, plan, way, case.stride, case.padding)


@settings(deadline=None, max_examples=40)
@given(cases())
def test_lift_is_a_correlation_with_one_field(case: Case) -> None:
    elements = len(case.sizes)
    one = torch.ones(elements, 1, 1, 1, dtype=torch.float64)
    single = Case(case.x[:, :, :1], case.weight[..., :1], case.x_samples, one, case.sizes, case.stride, case.padding)
    found = paths.lift(case.x[:, :, 0], case.weight[..., 0], case.x_samples[:, 0], **case.options)
    torch.testing.assert_close(found, naive(single), **EXACT)


@pytest.mark.parametrize("buffer", ["fields", "rows", "chosen"])
def test_a_wrong_plan_is_noticed(buffer: str) -> None:
    case = aligned_case(reach=2)
    plan = paths.Plan(case.h_samples, case.sizes)
    route = next(r for r in plan.routes if r.group == 1 and r.mixed == (buffer != "fields"))
    broken = plan.table(route, 0).fields if buffer == "fields" else getattr(plan, buffer)
    broken.copy_(broken.roll(1, 0))
    found = by(case, plan, choice.Choice(route, ("banded",)))
    assert (found - naive(case)).abs().max() > 0.1


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
    plan = paths.Plan(aligned_case(reach=1).h_samples, ((3, 3),) * 8)
    widths = {(r.mixed, r.group): r.widths for r in plan.routes}
    assert widths[False, 1] == widths[True, 1] == (3,)  # a gather: N_k fields an element, no mixing needed
    assert widths[False, 2] == (4,)  # two neighbours share two of their three fields
    plan = paths.Plan(aligned_case(reach=3).h_samples, ((3, 3),) * 8)
    widths = {(r.mixed, r.group): r.widths for r in plan.routes}
    assert widths[False, 1] == (5,)
    assert widths[True, 1] == (3,)
    assert len(plan.rows) == 8  # 24 rows, of which 8 differ


def test_plan_drops_rows_that_are_zero_or_rounding() -> None:
    samples = banded_samples(5, 5, 3, 1, cyclic=False)  # the last elements reach past the grid
    noisy = samples + 1e-16 * torch.randn_like(samples)
    plan = paths.Plan(noisy, ((3,),) * 5)
    table = plan.table(next(r for r in plan.routes if r.group == 1), 0)
    assert table.counts.tolist() == [3, 3, 3, 2, 1]
    assert paths.Plan(torch.zeros(2, 1, 3, 2), ((3,),) * 2).rows.numel() == 1


def test_plan_of_trained_samples_assumes_nothing() -> None:
    plan = paths.Plan(aligned_case(reach=1).h_samples.requires_grad_(), ((3, 3),) * 8)
    assert len(plan.rows) == 8 * 3
    assert {r.widths for r in plan.routes if not r.mixed} == {(8,)}


def test_plan_is_not_in_the_state_dict() -> None:
    assert paths.Plan(aligned_case(reach=1).h_samples, ((3, 3),) * 8).state_dict() == {}


@pytest.mark.parametrize(
    ("channels", "elements", "n_k", "name"),
    [(16, 16, 3, "banded"), (10, 16, 3, "banded"), (16, 8, 8, "dense"), (2, 4, 3, "dense")],
)
def test_the_cheaper_path_is_chosen(channels: int, elements: int, n_k: int, name: str) -> None:
    assert chosen_for(aligned_case(reach=1, elements=elements, n_k=n_k, channels=channels)) == (name,)


def chosen_for(case: Case) -> tuple[str, ...]:
    chosen = choice.choose(case.x, case.weight, paths.Plan(case.h_samples, case.sizes, case.x_samples), case.sizes)
    return ("dense",) if chosen is None else chosen.methods


def test_overlapping_splines_are_mixed_first() -> None:
    case = aligned_case(reach=3, elements=16, channels=16)
    chosen = choice.choose(case.x, case.weight, paths.Plan(case.h_samples, case.sizes), case.sizes)
    assert chosen is not None
    assert chosen.route.mixed
    assert chosen.route.group == 1


def test_wide_windows_of_low_rank_are_separated() -> None:
    case = scaled_case()
    assert chosen_for(case) == ("banded", "separable", "separable")
    case.x_samples = torch.randn_like(case.x_samples)  # full rank
    assert chosen_for(case) == ("banded",) * 3


def scaled_case() -> Case:
    """Three scales of one product basis, 3 × 3 centres, in windows that grow with them."""
    torch.manual_seed(0)
    x_samples = torch.zeros(3, 1, 21, 21, 3, 3, dtype=torch.float64)
    for a, size in enumerate((3, 11, 21)):
        along, own = torch.randn(2, size, 3, dtype=torch.float64), slice((21 - size) // 2, (21 + size) // 2)
        x_samples[a, 0, own, own] = along[0][:, None, :, None] * along[1][None, :, None, :]
    return Case(
        x=torch.randn(1, 16, 3, 30, 30, dtype=torch.float64),
        weight=torch.randn(16, 16, 9, 2, dtype=torch.float64),
        x_samples=x_samples.flatten(-2),
        h_samples=banded_samples(3, 3, 2, 1, cyclic=False),
        sizes=((3, 3), (11, 11), (21, 21)),
        stride=(1, 1),
        padding=(10, 10),
    )


def test_cost_grows_with_the_fields_read() -> None:
    narrow = cost.Part(16, (5, 5), channels=32, outputs=32, height=42, rank=0, width=3, positions=10**6)
    wide, whole = replace(narrow, width=6), replace(narrow, width=16)
    assert cost.banded(wide, cost.CPU) == 2 * cost.banded(narrow, cost.CPU)
    assert cost.triton(narrow, cost.CUDA) < cost.triton(wide, cost.CUDA) < cost.dense(whole, cost.CUDA)


def test_a_path_can_be_forced_and_is_given_back() -> None:
    case = aligned_case(reach=1, channels=2, elements=4)
    with paths.use("banded"):
        assert chosen_for(case) == ("banded",)
        with paths.use("dense"):
            assert chosen_for(case) == ("dense",)
        assert chosen_for(case) == ("banded",)
    with contextlib.suppress(RuntimeError), paths.use("banded"):
        raise RuntimeError
    assert chosen_for(case) == ("dense",)
    with paths.use("separable"):
        assert chosen_for(scaled_case()) == ("banded", "separable", "separable")  # 3 centres in 3 samples
        assert chosen_for(case) == ("banded",)


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown path 'fast': use one of auto, dense"), paths.use("fast"):
        pass


@pytest.mark.parametrize("name", ["dense", "banded", "separable"])
def test_compiled_whole(name: str) -> None:
    case = scaled_case() if name == "separable" else aligned_case(reach=2)
    plan = paths.Plan(case.h_samples, case.sizes, case.x_samples)
    case.weight.requires_grad_()
    truth = naive(case)
    (expected,) = torch.autograd.grad(truth.square().sum(), case.weight)
    with paths.use(name):
        step = torch.compile(
            lambda x, w: paths.correlate(x, w, *case.tensors[2:], **case.options, plan=plan),
            fullgraph=True,
            backend="aot_eager",
        )
        found = step(case.x, case.weight)
        (gradient,) = torch.autograd.grad(found.square().sum(), case.weight)
    torch.testing.assert_close(found, truth, **EXACT)
    torch.testing.assert_close(gradient, expected, **EXACT)


@pytest.mark.parametrize("name", ["dense", "banded"])
def test_autocast_builds_kernels_in_float32(name: str) -> None:
    case = aligned_case(reach=2)
    # Coefficients that cancel: in bfloat16 the sum over j would be lost, in float32 it is exact.
    weight = case.weight.float()
    weight[..., 1] = -weight[..., 0] * (1 + 2**-12)
    weight[..., 2] = 0
    h_samples = torch.ones_like(case.h_samples).float()
    plan = paths.Plan(h_samples, case.sizes)
    x, x_samples = case.x.float(), case.x_samples.float()
    exact = naive(Case(x.double(), weight.double(), x_samples.double(), h_samples.double(), *case.options.values()))
    weight.requires_grad_()
    with paths.use(name), torch.autocast("cpu", dtype=torch.bfloat16):
        found = paths.correlate(x, weight, x_samples, h_samples, **case.options, plan=plan)
    assert found.dtype == torch.bfloat16
    assert (found.double() - exact).norm() / exact.norm() < 2e-2
    found.float().sum().backward()
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


@pytest.mark.parametrize("name", ["dense", "banded"])
def test_half_precision_layers_compute_in_their_dtype(name: str) -> None:
    case = aligned_case(reach=1)
    plan = paths.Plan(case.h_samples, case.sizes)
    x, weight = case.x.bfloat16(), case.weight.bfloat16()
    with paths.use(name):
        found = paths.correlate(x, weight, case.x_samples.float(), case.h_samples.float(), **case.options, plan=plan)
    assert found.dtype == torch.bfloat16
    truth = naive(Case(x.double(), weight.double(), *case.tensors[2:], *case.options.values()))
    assert (found.double() - truth).norm() / truth.norm() < 1e-2
