"""Mistakes that are easy to make, planted one at a time: the comparison with the formulas sees each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import liespline as ls
import oracle
from liespline.functional import sampling
from liespline.groups import so2

pytestmark = pytest.mark.filterwarnings("ignore:.*energy falls outside")

STEP = 0.5 * math.log(2)


@pytest.fixture(autouse=True)
def _fresh_samples() -> Iterator[None]:
    for cached in (sampling.space_samples, sampling.group_samples):
        cached.cache_clear()
    yield
    for cached in (sampling.space_samples, sampling.group_samples):
        cached.cache_clear()


def rotations() -> ls.GConv:
    torch.manual_seed(0)
    return ls.GConv(1, 2, 5, ls.uniform(ls.SO2(), 5), dtype=torch.float64)


def few_rotations() -> ls.GConv:
    torch.manual_seed(0)
    return ls.GConv(1, 2, 5, ls.uniform(ls.SO2(), 2), dtype=torch.float64)


def scales() -> ls.GConv:
    torch.manual_seed(0)
    return ls.GConv(1, 2, 3, ls.uniform(ls.Scale(2), 3, spacing=STEP), dtype=torch.float64)


def unequal_weights() -> ls.GConv:
    torch.manual_seed(0)
    coarse, fine = ls.local(ls.SO2(), 3, 0.8), ls.local(ls.SO2(), 3, 0.5)
    return ls.GConv(1, 2, 3, coarse, out_grid=fine, dtype=torch.float64)


def agrees(make: Callable[[], ls.GConv]) -> bool:
    layer = make()
    return bool(np.allclose(layer.kernel().detach().numpy(), oracle.kernel(layer), atol=1e-10))


@pytest.mark.parametrize("make", [rotations, few_rotations, scales, unequal_weights])
def test_without_a_fault_they_agree(make: Callable[[], ls.GConv]) -> None:
    assert agrees(make)


def test_dropping_the_determinant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ls.Group, "det", lambda self, h: torch.ones(len(h), dtype=h.dtype))
    assert not agrees(scales)


def test_h_instead_of_its_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ls.Group, "pull", lambda self, h, x: self.act(h, x))
    assert not agrees(rotations)


def test_relative_element_the_wrong_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ls.Group, "relative", lambda self, g, h: self.product(self.inverse(h), g))
    assert not agrees(scales)


def test_quadrature_of_the_output_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sampling.group_points
    monkeypatch.setattr(sampling, "group_points", lambda grid, out: (right(grid, out)[0], out.weights.unsqueeze(0)))
    assert not agrees(unequal_weights)


def test_mask_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    right = sampling.space_points

    def wider(grid: ls.Grid, window: sampling.Window) -> tuple[torch.Tensor, torch.Tensor]:
        sizes = tuple(tuple(min(n + 2, m) for n, m in zip(s, window.largest, strict=True)) for s in window.sizes)
        return right(grid, sampling.Window(window.kernel_size, sizes))

    monkeypatch.setattr(sampling, "space_points", wider)
    assert not agrees(scales)


def test_forgetting_the_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(so2, "wrap", lambda angle: angle)
    assert not agrees(rotations)


def test_forgetting_the_period(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ls.SO2, "period", None)
    assert not agrees(few_rotations)


def windows_are_right(window: Callable[[ls.Grid, tuple[int, ...]], sampling.Window]) -> bool:
    """The window of scale s holds the samples nearer the centre than s times the first one left out at scale 1."""
    grid = ls.uniform(ls.Scale(2), 5, spacing=STEP)
    for k in (3, 4, 5, 7):
        for s, size in zip(grid.elements[:, 0].tolist(), window(grid, (k, k)).sizes, strict=True):
            offsets = [i + (0.5 if k % 2 == 0 else 0.0) for i in range(-99, 99)]
            inside = sum(abs(v) < s * (k + 1) / 2 - 1e-9 for v in offsets)
            if size != (inside, inside):
                return False
    turned = window(ls.uniform(ls.SO2(), 8), (5, 5)).sizes
    return set(turned) == {(5, 5)} and window(ls.uniform(ls.SO2(), 4), (3, 7)).sizes[1] == (7, 3)


def test_window_off_by_one() -> None:
    assert windows_are_right(sampling.window)

    def smaller(grid: ls.Grid, kernel_size: tuple[int, ...]) -> sampling.Window:
        right = sampling.window(grid, kernel_size)
        sizes = tuple(tuple(n - 2 if n > k else n for n, k in zip(s, kernel_size, strict=True)) for s in right.sizes)
        return sampling.Window(kernel_size, sizes)

    assert not windows_are_right(smaller)
