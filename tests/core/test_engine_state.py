"""What the engine keeps and switches: choices, forced paths of compiled networks, cuDNN's search, the current GPU."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

import liespline as ls
from liespline import models, ops
from liespline.ops import choose
from liespline.ops.correlate import cudnn
from liespline.ops.operator import on_its_device

TURNS = ls.uniform(ls.SO2(), 8)


def test_shifts_leave_no_plans_behind() -> None:
    layer, x = ls.GConv(2, 2, 5, TURNS), torch.randn(1, 2, 8, 9, 9)
    plans = []
    for i in range(50):
        ls.nn.shift(layer, torch.tensor([0.01 * (i + 1)]))
        layer(x)
        plans.append(weakref.ref(layer.plan))
    gc.collect()
    assert sum(plan() is not None for plan in plans) <= 2
    mine = weakref.ref(layer.plan)
    del layer
    gc.collect()
    assert mine() is None


def test_a_compiled_network_follows_a_path_forced_later(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = ls.GConv(2, 2, 5, TURNS).eval(), torch.randn(1, 2, 8, 9, 9)
    monkeypatch.setattr(choose, "_forced", choose._Forced())  # of a process in which nothing was forced yet
    torch.compiler.reset()
    graphs: list[list[str]] = []

    def backend(graph: torch.fx.GraphModule, _: object) -> Callable[..., object]:
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph.forward

    compiled, right = torch.compile(layer, backend=backend, fullgraph=True), layer(x)
    counts = []
    torch.testing.assert_close(compiled(x), right)
    for path in ("banded", "auto", "dense", "banded"):
        with ops.use(path):
            torch.testing.assert_close(compiled(x), right)
        counts.append(len(graphs))
    assert counts == [2, 2, 3, 3]  # each is compiled once
    assert graphs[0] == graphs[2] != graphs[1]


def test_threads_that_search_leave_the_setting_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", False)
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", False)
    first, second = threading.Event(), threading.Event()

    def search(mine: threading.Event, other: threading.Event) -> None:
        with cudnn._searched((5, 5, 5)):
            mine.set()
            assert other.wait(10)
            assert torch.backends.cudnn.benchmark

    # The first one ends while the second is within, which began while the first one was.
    threads = [threading.Thread(target=search, args=pair) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not torch.backends.cudnn.benchmark
    with cudnn._searched((5, 5, 5)), cudnn._searched((3, 3)):
        pass
    assert not torch.backends.cudnn.benchmark


def test_kernels_are_launched_on_the_device_of_their_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[Tensor] = []

    @contextmanager
    def device_of(x: Tensor) -> Iterator[None]:
        current.append(x)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "device_of", device_of)
    launch = on_its_device(lambda x, more: list(current))
    x = torch.ones(1)
    assert launch(x, 3) == [x]
    assert not current


def local(elements: int) -> nn.Module:
    torch.manual_seed(0)
    return models.classifier(1, 3, ls.uniform(ls.SO2(), elements), widths=(3, 4, 4), kernel="local")


def test_parameters_of_another_grid_are_refused_from_safetensors_too() -> None:
    state = load(save(local(4).state_dict()))
    with pytest.raises(RuntimeError, match=r"splines on H of width 1\.571, and here they have width 0\.7854"):
        local(8).load_state_dict(state)
    local(4).load_state_dict(state)
    local(4).half().load_state_dict({name: value.half() for name, value in state.items()})


def test_parameters_of_version_0_2_load_and_are_compared() -> None:
    state, layer = local(4).state_dict(), local(4)[2]
    assert isinstance(layer, ls.GConv)
    plain = {name: value for name, value in state.items() if not name.endswith("h_basis")}
    local(8).load_state_dict(plain)  # nothing is known of it
    old = type(state)(plain)
    old._metadata = {name: dict(facts) for name, facts in state._metadata.items()}
    centres = [round(value, 9) for value in layer.h_basis.grid.elements.flatten().tolist()]
    for name, module in local(4).named_modules():
        if isinstance(module, ls.GConv):
            old._metadata[name]["h_basis"] = [layer.h_basis.scale, layer.h_basis.degree, len(layer.h_basis), centres]
    local(4).load_state_dict(old)
    with pytest.raises(RuntimeError, match="splines on H of width"):
        local(8).load_state_dict(old)


@pytest.mark.parametrize("norm", [ls.nn.BatchNorm(3), ls.nn.NormReLU(3), ls.nn.NormReLU(3, 2)], ids=repr)
def test_an_empty_batch_in_training_changes_no_statistics(norm: nn.Module) -> None:
    x = torch.empty(0, 3, 8, 4, 4, requires_grad=True)
    out = norm.train()(x)
    out.sum().backward()
    assert (out.shape[0], x.grad.shape) == (0, x.shape)
    statistics = norm if isinstance(norm, ls.nn.BatchNorm) else norm[0]
    assert statistics.running_mean.eq(0).all()
    assert statistics.running_var.eq(1).all()
    with pytest.raises(ValueError, match="one value per channel; training needs more"):
        norm(torch.empty(1, 3, 1, 1, 1))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch.jit as a whole
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # checks of shapes
def test_an_exported_network_is_traced_with_gradients_enabled() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(ls.Lift(1, 3, 5, TURNS), ls.nn.NormReLU(3), ls.Project("max", TURNS)).eval()
    plain, x = ls.export(net), torch.randn(2, 1, 12, 12)
    traced = torch.jit.trace(plain, x)
    torch.testing.assert_close(traced(2 * x), net(2 * x))
