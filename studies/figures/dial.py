"""Between all of a group and none of it: amplitude, bias, restriction, and what a maximum forgets (our figure)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from liespline.functional import bispectrum, fourier_rows
from liespline.grids import uniform
from liespline.groups import O2, SO2
from liespline.nn import FrameBias
from liespline.nn.restrict import cosets

from .style import PAGE, Theme, bare, canvas, pixels

_N = 8
_SIGN = torch.tensor([[1.0, -0.4], [-1, -0.4], [-1, 0.6], [-1, -0.4], [0, -0.4], [0, 0.3]])  # an F


class Data(NamedTuple):
    """All of the figure's numbers."""

    angles: Tensor
    around: Tensor
    bias: Tensor
    """Of a fine circle, seen from its own frame and from another one: `(2, points)`."""
    poses: Tensor
    """A sign under each symmetry of the square, `(8, points, 2)` as (row, column)."""
    coset: Tensor
    features: Tensor
    spectra: Tensor


def prepare() -> Data:
    """Evaluate a bias, the cosets of C4 in D4, and two features of one maximum."""
    generator = torch.Generator().manual_seed(3)
    grid, around = uniform(SO2(), _N), uniform(SO2(), 180)
    layer = FrameBias(1, grid).double()
    with torch.no_grad():
        layer.weight.copy_(torch.rand(1, _N, generator=generator, dtype=torch.float64))
        seen = [layer.weight @ layer.basis(around.elements - turn).T for turn in (0.0, 1.0)]
    square = uniform(O2(), 8)
    _, numbers = cosets(square, uniform(SO2(), 4))
    poses = square.group.act(square.elements.unsqueeze(1), _SIGN.double())
    coset = torch.zeros(len(square), dtype=torch.long)
    for number, members in enumerate(numbers):
        coset[members] = number
    one = torch.rand(_N, generator=generator, dtype=torch.float64)
    features = torch.stack((one, one[torch.tensor([0, 3, 1, 2, 4, 7, 5, 6])]))
    spectra = bispectrum(features.unsqueeze(1), fourier_rows(grid))
    return Data(grid.elements[:, 0], around.elements[:, 0], torch.cat(seen), poses, coset, features, spectra)


def draw(data: Data, theme: Theme) -> Figure:
    """Draw four panels side by side."""
    figure = canvas(PAGE, 1.95)
    panels = figure.subplots(1, 4)
    titles = (
        "amplitude α of the jitter",
        "bias b, two frames",
        "D₄ as two cosets of C₄",
        "two features of one maximum",
    )
    for axes, title, drawn in zip(panels, titles, (_amplitude, _bias, _restriction, _forgotten), strict=True):
        axes.set_title(title)
        drawn(axes, data, theme)
    figure.tight_layout(w_pad=0.6)
    return figure


def _circle(axes: Axes, theme: Theme) -> None:
    bare(axes)
    turn = np.linspace(0, 2 * math.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=theme.faint)


def _amplitude(axes: Axes, data: Data, theme: Theme) -> None:
    _circle(axes, theme)
    for angle in data.angles.tolist():
        for alpha, colour in ((1.0, theme.series[5]), (0.4, theme.series[0])):
            cell = angle + alpha * math.pi / _N * np.linspace(-0.9, 0.9, 20)
            axes.plot(np.cos(cell), np.sin(cell), color=colour, linewidth=2 if alpha == 1 else 4)
        axes.plot(math.cos(angle), math.sin(angle), "o", color=theme.ink)
    axes.text(0, 0, "0: the points\n0.4: thick\n1: all", ha="center", va="center", fontsize=6.5)


def _bias(axes: Axes, data: Data, theme: Theme) -> None:
    _circle(axes, theme)
    order = data.around.argsort()
    for values, colour in zip(data.bias, theme.series, strict=False):
        radius, angle = pixels(1 + 0.6 * (values - values.mean())[order]), pixels(data.around[order])
        axes.plot(radius * np.cos(angle), radius * np.sin(angle), color=colour)
    for turn, colour in zip((0.0, 1.0), theme.series, strict=False):
        end = (0.55 * math.cos(turn), 0.55 * math.sin(turn))
        axes.annotate("", end, (0, 0), arrowprops={"arrowstyle": "->", "color": colour})


def _restriction(axes: Axes, data: Data, theme: Theme) -> None:
    bare(axes)
    places = [0, 0]
    for pose, number in zip(data.poses, data.coset.tolist(), strict=True):
        row, column = pixels(0.3 * pose).T
        axes.plot(column + places[number], -row - 1.1 * number, color=theme.series[number], linewidth=2)
        places[number] += 1
    for number in (0, 1):
        axes.text(-0.6, -1.1 * number, f"i = {number}", ha="right", va="center", fontsize=6.5)


def _forgotten(axes: Axes, data: Data, theme: Theme) -> None:
    place = np.arange(_N)
    for number, (feature, colour) in enumerate(zip(data.features, theme.series, strict=False)):
        axes.bar(place + 0.4 * number - 0.2, pixels(feature), 0.38, color=colour)
    axes.axhline(float(data.features.amax()), color=theme.muted, linewidth=0.6)
    gap = float((data.spectra[0] - data.spectra[1]).norm() / data.spectra[0].norm())
    axes.set_xlabel(f"h; their bispectra are {100 * gap:.0f} % apart")
    axes.set_xticks([])
    axes.set_yticks([])
