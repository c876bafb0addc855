"""What the choice of a path depends on, that it is remembered safely, and how few files a layer goes through."""

import copy
import sys
import threading
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import liespline as ls
from liespline import ops
from liespline.models.kernels import h_basis
from liespline.ops import choose, decide, plan
from liespline.ops.correlate import cudnn, reference, triton, whole
from liespline.ops.layout import Order
from liespline.ops.path import Choice, Question

SIXTEEN = ls.uniform(ls.SO2(), 16)


def local(channels: int = 16) -> ls.GConv:
    torch.manual_seed(0)
    return ls.GConv(channels, channels, 5, SIXTEEN, h_basis=h_basis(SIXTEEN, "local", 3, degree=1))


def choice(layer: ls.GConv, x: torch.Tensor) -> Choice:
    return choose.choose(x, layer.weight, layer.window.sizes, layer.stride, (0, 0), layer.plan)


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU that our portable kernels run on."""
    monkeypatch.setattr(triton, "available", lambda device, dtype: True)


def on_a_gpu(layer: ls.GConv, **changes: Any) -> Choice:
    """What is chosen in bfloat16 on a GPU."""
    d = len(layer.kernel_size)
    question = Question(
        "auto", torch.device("cuda"), True, torch.bfloat16, False, 64, (layer.in_channels, len(layer.grid)),
        layer.out_channels, (42,) * d, (38,) * d, layer.window.sizes, (1,) * d, (0,) * d, Order.CHANNELS, False, False,
    )  # fmt: skip
    return decide.decide(question._replace(**changes), layer.plan)


def test_a_gpu_takes_our_kernels_where_they_pay_and_only_where_nobody_transforms_them(kernels: None) -> None:
    layer = local(64)
    assert on_a_gpu(layer).paths == (triton.PATH,)
    assert on_a_gpu(layer, dtype=torch.float32, exact=True).paths == (cudnn.PATH,)
    # Forward-mode derivatives and vmap know torch's own operators: ours would give zeros without a word.
    assert on_a_gpu(layer, transformed=True).paths == (reference.PATH,)
    assert on_a_gpu(local(8)).paths == (cudnn.PATH,)
    with pytest.raises(ValueError, match="path 'triton' does not take"):
        on_a_gpu(layer, forced="triton", transformed=True)


def test_a_gpu_without_our_kernels_convolves_whole() -> None:
    assert on_a_gpu(local(64)).paths == (cudnn.PATH,)


def test_a_gpu_convolves_along_one_axis_plainly() -> None:
    """A channels-last layout is for images and volumes."""
    layer = ls.GConv(8, 8, 5, ls.uniform(ls.Scale(1), 3, spacing=0.5))
    assert set(on_a_gpu(layer).methods) == {"plain"}


def test_tiles_waste_little_and_are_not_small() -> None:
    counts = (8, 16, 20, 32, 40, 64, 80, 96)
    assert [triton.block(count) for count in counts] == [16, 16, 32, 32, 64, 64, 32, 32]
    assert triton.block(64, most=32) == 32


def test_transforms_are_noticed() -> None:
    seen = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append(choose.transformed())
        return x.sum()

    x = torch.ones(2)
    look(x)
    torch.func.jvp(look, (x,), (x,))
    torch.vmap(look)(x.view(1, 2))
    with torch.autograd.forward_ad.dual_level():
        look(torch.autograd.forward_ad.make_dual(x, x))
    look(x)
    assert seen == [False, True, True, True, False]


def test_choices_are_remembered_and_forgotten() -> None:
    layer = local()
    for size in range(6, 1200):
        choice(layer, torch.empty(1, 16, 16, 6, size))
    remembered = choose._of_plans[layer.plan]
    assert 1 < len(remembered) <= 1024
    last = choice(layer, torch.empty(1, 16, 16, 6, 1199))
    assert any(last is one for one in remembered.values())


def test_a_forced_path_stays_in_its_thread() -> None:
    layer, x, seen = local(2), torch.empty(1, 2, 16, 6, 6), {}
    inside, checked = threading.Event(), threading.Event()

    def other() -> None:
        with ops.use("banded"):
            inside.set()
            checked.wait(10)
            seen["there"] = choice(layer, x).whole

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    seen["here"] = choice(layer, x).whole
    checked.set()
    thread.join()
    assert seen == {"here": True, "there": False}


def test_many_threads_keep_the_same() -> None:
    layer, wrong = local(2), []

    def work(start: int) -> None:
        for i in range(2000):
            key = (start + i) % 50  # more than are kept
            if plan.kept(layer.plan, key, lambda key=key: key) != key:
                wrong.append(key)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(0, 40, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(plan._kept[layer.plan]) <= 32


def tables(one: ops.Plan) -> list[torch.Tensor]:
    found = [one.labels, *(t for t in (one.rows, one.order) if t is not None)]
    for part in one.parts:
        found += [part.members, *(t for table in part.tables for t in table[:5])]
    return found


def test_tables_lie_where_the_input_is() -> None:
    """A replica of a layer on another device shares its plan: what is made of it has to be asked for by device."""
    layer = ls.GConv(2, 2, 5, ls.uniform(ls.Scale(2), 3, spacing=0.3))
    meta = torch.device("meta")
    moved = layer.plan.on(meta)
    assert {t.device for t in tables(moved)} == {meta}
    assert {t.device.type for t in tables(layer.plan)} == {"cpu"}
    assert layer.plan.on(meta) is moved
    assert layer.plan.on(torch.device("cpu")) is layer.plan


def test_plans_are_values_shared_by_equal_layers() -> None:
    one, other, third = local(), local(4), ls.GConv(2, 2, 5, SIXTEEN)
    assert one.plan is other.plan
    assert one.plan is not third.plan
    assert copy.deepcopy(one).plan is one.plan
    assert not any(isinstance(getattr(one.plan, field.name), torch.nn.Module) for field in fields(one.plan))


def calls_of(call: Any) -> list[str]:
    """The files of the library whose Python functions run, one for each call."""
    ours, seen = str(Path(ls.__file__).parent), []

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ours):
            seen.append(frame.f_code.co_filename.removeprefix(ours))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize(
    ("path", "most"), [("auto", 13), ("dense", 8), ("fourier", 10), ("banded", 12), ("separable", 13)]
)
def test_a_warm_layer_goes_through_few_files(path: str, most: int) -> None:
    """Of several windows, whose fields are mixed first."""
    layer, x = ls.GConv(4, 4, 5, ls.uniform(ls.Scale(2), 4, spacing=0.3)), torch.randn(1, 4, 4, 16, 16)
    with ops.use(path), torch.no_grad():
        layer(x)
        assert len(set(calls_of(lambda: layer(x)))) <= most  # one of them asks torch what it says in private


def test_a_warm_small_layer_makes_few_calls() -> None:
    layer, x = ls.GConv(2, 2, 5, ls.uniform(ls.SO2(), 8)), torch.randn(1, 2, 8, 8, 8)
    layer(x)
    assert len(calls_of(lambda: layer(x))) <= 25


def test_a_layer_of_one_spline_on_h_rounds_as_plain_torch_does() -> None:
    """To the last digit: networks that were stored give what they gave."""
    grid = ls.uniform(ls.SO2(), 4)
    layer = ls.GConv(2, 2, 5, grid, h_basis=ls.SplineBasis(ls.local(ls.SO2(), 1, grid.spacing)))
    x = torch.randn(2, 2, 4, 9, 9)
    once, again = layer(x), layer(x)
    assert torch.equal(once, again)
    kernel = layer.kernel().flatten(0, 1).flatten(1, 2)
    right = torch.nn.functional.conv2d(x.flatten(1, 2), kernel).unflatten(1, (2, 4))
    assert torch.equal(once, right + layer.bias.view(-1, 1, 1, 1))


@pytest.mark.parametrize("channels_last", [True, False])  # as a GPU samples it, and a CPU for small layers
def test_one_product_is_the_kernel(channels_last: bool) -> None:
    weight, x_samples = torch.randn(3, 2, 9, 4).double(), torch.randn(5, 1, 3, 7, 9).double()
    h_samples = torch.randn(5, 1, 6, 4).double()
    matrix = whole.outer(x_samples, h_samples, channels_last)
    sampled = whole.kernel_at_once(weight, matrix, 6, (3, 7), channels_last)
    torch.testing.assert_close(sampled, reference.kernel(weight, x_samples, h_samples))


@pytest.mark.parametrize("path", ["banded", "separable"])  # of the whole kernel a CPU keeps nothing
def test_nothing_is_kept_of_what_a_transform_saw(path: str) -> None:
    layer, x = ls.GConv(2, 2, 5, ls.uniform(ls.SO2(), 4)).double(), torch.randn(1, 2, 4, 9, 9).double()
    plan._kept.pop(layer.plan, None)  # of layers elsewhere that have the same samples, and so share the plan
    with ops.use(path):
        torch.func.grad(lambda x: layer(x).sum())(x)
        torch.vmap(layer)(x.unsqueeze(0))
        layer(x)
    kept = tree_leaves(list(plan._kept[layer.plan].values()))
    assert kept
    assert not any(torch._C._functorch.is_functorch_wrapped_tensor(value) for value in kept)


def test_a_compiler_is_no_transform() -> None:
    def asked(x: torch.Tensor) -> torch.Tensor:
        return 2 * x if choose.transformed() else x

    x = torch.ones(1, requires_grad=True)
    torch.compiler.reset()
    assert float(torch.compile(asked, backend="aot_eager", fullgraph=True)(x).detach()) == 1
    assert float(asked(x).detach()) == 1
    assert float(torch.func.vmap(asked)(torch.ones(1))) == 2
