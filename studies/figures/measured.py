"""What we measure ourselves: equivariance against window and degree, accuracy against angle, time against N_h."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from torch import Tensor, nn

from liespline import models, ops
from liespline.grids import disc, local, uniform
from liespline.groups import SO2
from liespline.lab.data import as_float, digits
from liespline.lab.transforms import moved
from liespline.nn import GConv, Lift
from liespline.splines import SplineBasis
from liespline.testing import equivariance_error

from .style import PAGE, Theme, canvas

_WINDOWS = (5, 7, 9)
_DEGREES = (1, 2, 3)
_ORIENTATIONS = (4, 8, 12, 16, 24, 32)
_ANGLES = range(0, 361, 15)
_TESTED = 150
_TRAINING = 160
"""Steps of 32 digits each, about five epochs."""


class Data(NamedTuple):
    """Each panel's lines, by name."""

    equivariance: dict[str, list[tuple[float, float]]]
    accuracy: dict[str, list[tuple[float, float]]]
    seconds: dict[str, list[tuple[float, float]]]
    images: int


def prepare() -> Data:
    """Measure everything, on this machine, now."""
    state = torch.random.get_rng_state()
    try:
        accuracy, images = _accuracy()
        return Data(_equivariance(), accuracy, _seconds(), images)
    finally:
        torch.random.set_rng_state(state)


def _equivariance() -> dict[str, list[tuple[float, float]]]:
    """Lift → ReLU → g-corr with 21 centres; medians over three random networks."""
    grid = uniform(SO2(), 12)
    turns = grid.elements  # multiples of 30°, with which its feature maps can be compared
    lines: dict[str, list[tuple[float, float]]] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*outside the", category=UserWarning)  # what the panel is about
        for degree in _DEGREES:
            basis = SplineBasis(disc(5), degree=degree)
            for window in _WINDOWS:
                errors = []
                for seed in range(3):
                    torch.manual_seed(seed)
                    first = Lift(1, 4, window, grid, x_basis=basis, dtype=torch.float64)
                    second = GConv(4, 4, window, grid, x_basis=basis, dtype=torch.float64)
                    net = nn.Sequential(first, nn.ReLU(), second)
                    errors.append(
                        equivariance_error(net, grid, size=2 * window - 1, elements=turns, images=2, seed=seed)
                    )
                lines.setdefault(f"degree {degree}", []).append((window, statistics.median(errors)))
    return lines


def _accuracy() -> tuple[dict[str, list[tuple[float, float]]], int]:
    """Two networks of equal size that saw upright digits only, tested at every angle."""
    images, targets = (part for part in _digits("train"))
    test, answers = (part[:_TESTED] for part in _digits("test"))
    torch.manual_seed(0)
    turning = models.classifier(1, 10, uniform(SO2(), 8), kernel="local", n_k=3, parameters=20_000)
    weights = sum(p.numel() for p in turning.parameters())
    torch.manual_seed(0)
    plain = models.classifier(1, 10, uniform(SO2(), 1), parameters=weights)
    lines = {}
    for name, net in (("2-D", plain), ("SE(2), $N_h = 8$", turning)):
        _train(net, images, targets)
        net.eval()
        points = []
        with torch.no_grad():
            for angle in _ANGLES:
                element = torch.tensor([math.radians(angle)], dtype=torch.float64)
                right = net(moved(test, SO2(), element)).argmax(-1) == answers
                points.append((float(angle), float(right.double().mean())))
        lines[name] = points
    return lines, len(test)


def _digits(split: str) -> tuple[Tensor, Tensor]:
    data = digits.load(split)
    images, targets = data.__getitems__(list(range(len(data))))
    return as_float(images), targets


def _train(net: nn.Module, images: Tensor, targets: Tensor) -> None:
    """Train as `liespline demo` does, without its bookkeeping."""
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.AdamW(net.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.02, total_steps=_TRAINING)
    for _ in range(_TRAINING):
        rows = torch.randint(len(images), (32,), generator=generator)
        loss = nn.functional.cross_entropy(net(images[rows]), targets[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


@torch.no_grad()
def _seconds() -> dict[str, list[tuple[float, float]]]:
    """One forward pass of a local kernel (N_k = 3), the paths in turn, best of four."""
    lines: dict[str, list[tuple[float, float]]] = {"dense": [], "banded": []}
    for n in _ORIENTATIONS:
        grid = uniform(SO2(), n)
        # degree 1: splines of three neighbours, which the banded path leaves out of all other blocks
        layer = GConv(8, 8, 5, grid, h_basis=SplineBasis(local(SO2(), 3, grid.spacing), degree=1))
        x = torch.randn(4, 8, n, 24, 24)
        best = dict.fromkeys(lines, math.inf)
        for _ in range(4):
            for name in lines:
                with ops.use(name):
                    start = time.perf_counter()
                    layer(x)
                    best[name] = min(best[name], time.perf_counter() - start)
        for name, points in lines.items():
            points.append((n, best[name]))
    return lines


def draw(data: Data, theme: Theme) -> Figure:
    """Draw the three panels."""
    figure = canvas(PAGE, 2.3)
    error, accuracy, seconds = figure.subplots(1, 3, gridspec_kw={"wspace": 0.34})
    _lines(error, data.equivariance, theme, (0.8, 0.58))
    error.set_yscale("log")
    error.set_xticks(_WINDOWS, [f"{w}×{w}" for w in _WINDOWS])
    error.set_xlabel("window")
    error.set_title("equivariance error", loc="left")
    error.yaxis.set_minor_formatter(NullFormatter())
    _lines(accuracy, data.accuracy, theme, (0.48, 0.66), marks=False)
    accuracy.set_xticks([0, 90, 180, 270, 360], [f"{a}°" for a in (0, 90, 180, 270, 360)])
    accuracy.set_ylim(0, 1.02)
    accuracy.set_yticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
    accuracy.set_xlabel("digits rotated by (trained upright)")
    accuracy.set_title(f"accuracy, {data.images} test digits", loc="left")
    scaled = {name: [(n, 1e3 * t) for n, t in line] for name, line in data.seconds.items()}
    _lines(seconds, scaled, theme, (0.25, 0.85))
    seconds.set_xticks([4, 8, 16, 24, 32])
    seconds.set_ylim(0, None)
    seconds.set_xlabel("$N_h$")
    seconds.set_title("one layer, forward, ms", loc="left")
    return figure


def _lines(
    axes: Axes,
    lines: dict[str, list[tuple[float, float]]],
    theme: Theme,
    legend: tuple[float, float],
    marks: bool = True,
) -> None:
    axes.grid(axis="y")
    axes.set_axisbelow(True)
    for (name, points), colour in zip(lines.items(), theme.series, strict=False):
        x, y = zip(*points, strict=True)
        axes.plot(x, y, "o-" if marks else "-", color=colour, label=name)
    axes.legend(handlelength=1.2, borderaxespad=0.2, loc="center", bbox_to_anchor=legend)
