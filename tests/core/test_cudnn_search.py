"""Where cuDNN is asked to try its kernels: large windows in 3-D, and nowhere that has to repeat exactly."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

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
