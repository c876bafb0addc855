"""What the engine says of its choices, and which of cuDNN's algorithms it takes."""

import importlib.metadata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn

import liespline as ls
from liespline import ops, testing
from liespline.ops import trust
from liespline.ops.correlate import cudnn

SETTINGS = torch.backends.cudnn


@pytest.fixture(autouse=True)
def _settings_as_they_were() -> Iterator[None]:
    before = SETTINGS.benchmark, SETTINGS.deterministic, torch.are_deterministic_algorithms_enabled()
    SETTINGS.deterministic = False  # a test of the lab may have asked for it before
    torch.use_deterministic_algorithms(False)
    yield
    SETTINGS.benchmark, SETTINGS.deterministic = before[:2]
    torch.use_deterministic_algorithms(before[2])


def searched(monkeypatch: pytest.MonkeyPatch, window: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether cuDNN searches, forward and backward, as the convolution itself sees it."""
    seen: list[bool] = []

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **kwargs: Any) -> Any:
            seen.append(SETTINGS.benchmark)
            return call(*args, **kwargs)

        return noting

    d = len(window)
    monkeypatch.setitem(cudnn.CONVOLUTIONS, d, watched(cudnn.CONVOLUTIONS[d]))
    monkeypatch.setattr(torch.ops.aten, "convolution_backward", watched(torch.ops.aten.convolution_backward))
    x, kernel = torch.randn(1, 1, *(5,) * d), torch.randn(1, 1, 1, *window, requires_grad=True)
    cudnn.convolve(x, kernel, (1,) * d, (0,) * d).sum().backward()
    forward, backward = seen
    return forward, backward


@pytest.mark.parametrize(
    ("window", "everywhere", "expected"),
    [
        ((5, 5, 5), False, True),
        ((1, 1, 5), False, True),
        ((3, 3, 3), False, False),
        ((5, 5), False, False),
        ((3, 3), True, True),  # who searches everywhere still does
    ],
)
def test_large_windows_of_volumes_are_searched(
    monkeypatch: pytest.MonkeyPatch, window: tuple[int, ...], everywhere: bool, expected: bool
) -> None:
    SETTINGS.benchmark = everywhere
    assert searched(monkeypatch, window) == (expected, expected)
    assert SETTINGS.benchmark is everywhere


@pytest.mark.parametrize("how", ["cudnn", "torch"])
def test_what_has_to_repeat_is_not_searched(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    SETTINGS.benchmark, SETTINGS.deterministic = False, how == "cudnn"
    torch.use_deterministic_algorithms(how == "torch")
    assert searched(monkeypatch, (5, 5, 5)) == (False, False)


def test_a_failed_call_leaves_the_setting_alone() -> None:
    SETTINGS.benchmark = False
    with pytest.raises(RuntimeError):
        cudnn.convolve(torch.randn(1, 1, 2, 2, 2), torch.randn(1, 1, 1, 5, 5, 5), (1, 1, 1), (0, 0, 0))
    assert not SETTINGS.benchmark


GRID = ls.uniform(ls.SO2(), 8)
LOCAL = ls.SplineBasis(ls.local(ls.SO2(), 3, GRID.spacing))


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        ls.Lift(3, 8, 5, GRID, padding=2), ls.nn.NormReLU(8), ls.GConv(8, 8, 5, GRID, padding=2, h_basis=LOCAL),
        ls.nn.SeparableGConv(8, 16, 5, GRID), ls.GConv(16, 8, 5, GRID, groups=2), ls.Project("max", GRID),
    )  # fmt: skip


def test_the_path_is_the_one_that_is_taken_and_the_cheapest(capsys: pytest.CaptureFixture[str]) -> None:
    net, x = network(), torch.randn(2, 3, 32, 32)
    before, mean = {k: v.clone() for k, v in net.state_dict().items()}, net[1][0].running_mean.clone()
    found = testing.engine(net, x)
    assert capsys.readouterr().out.strip() == str(found)
    assert [layer.name for layer in found.layers] == ["0", "2", "3.0", "3.1", "4"]
    assert found.layers[-1].path == "grouped convolution"
    assert found.off == ("kernels of liespline's own are for NVIDIA GPUs: the input is on 'cpu'",)
    for layer in found.layers:
        if layer.prices:
            assert layer.prices[layer.path] == min(layer.prices.values())
    # Twice the images, twice the multiplications: prices are of the whole input.
    twice = testing.engine(net, torch.cat([x, x]))
    assert twice.layers[0].prices["dense"] == 2 * found.layers[0].prices["dense"]
    # The network is as it was: its statistics have not seen the input, and nothing watches it.
    assert torch.equal(net[1][0].running_mean, mean)
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert not any(module._forward_hooks for module in net.modules())


@pytest.mark.parametrize("path", ["dense", "banded", "fourier", "separable"])
def test_a_forced_path_is_shown(path: str) -> None:
    grid = ls.uniform(ls.Scale(2), 4, spacing=0.3) if path == "separable" else GRID
    basis = None if path == "separable" else LOCAL
    layer = ls.GConv(8, 8, 5, grid, h_basis=basis).eval()
    x = torch.randn(2, 8, len(grid), 20, 20)
    with ops.use(path):
        (found,) = testing.engine(layer, x).layers
    assert found.path == path
    # Prices are of the input, whatever is forced.
    (free,) = testing.engine(layer, x).layers
    assert found.prices == free.prices
    assert {"dense", "banded", path} <= {*free.prices}


@pytest.fixture
def a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Kernels are asked as if there were an H200, with Triton 3.5."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _: "3.5.1")
    monkeypatch.setattr(trust, "capability", lambda _: (9, 0))
    for cached in (trust.installed, trust._missing):
        cached.cache_clear()
    yield
    for cached in (trust.installed, trust._missing):
        cached.cache_clear()


def test_a_kernel_that_is_off_says_what_it_needs(a_gpu: None) -> None:
    gpu = torch.device("cuda", 5)
    assert trust.off("hopper", gpu, torch.bfloat16) == "Triton 3.5 is installed, 3.6 or later is needed"
    assert trust.off("triton", gpu, torch.bfloat16) == ""
    assert trust.off("depthwise", gpu, torch.float32) == "the layer computes in float32, they take bfloat16"
