"""Partitions of unity and splines on SO(2), R⁺ and S² (figure BSplinesOnH)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpecBase
from torch import Tensor

from liespline.grids import repulsion, uniform
from liespline.groups import SO2, Scale, Sphere
from liespline.splines import SplineBasis

from . import sphere
from .style import PAGE, Pixels, Theme, canvas, pixels

_COUNTS = (50, 500, 5000)
_SIZE = 256


class Line(NamedTuple):
    """A basis on a one-dimensional group along its algebra, and a random spline in it."""

    at: Tensor
    basis: Tensor
    coefficients: Tensor
    centres: Tensor


class Balls(NamedTuple):
    """The basis of one count of centres on the sphere."""

    n: int
    centres: Tensor
    single: Pixels
    """A few splines far from each other, so that each is seen alone; 1 is the height of one."""
    total: Pixels
    rebuilt: Pixels


class Data(NamedTuple):
    """All of the figure's numbers."""

    lines: tuple[Line, Line]
    where: sphere.Ball
    balls: tuple[Balls, ...]
    texture: Pixels


def prepare() -> Data:
    """Evaluate the bases, fit the texture at every resolution."""
    generator = torch.Generator().manual_seed(7)
    so2 = SplineBasis(uniform(SO2(), 8))
    scale = SplineBasis(uniform(Scale(2), 6, spacing=0.5 * math.log(2)))
    turn = torch.linspace(-math.pi, math.pi, 721, dtype=torch.float64)
    zoom = torch.linspace(-2 * scale.width, 7 * scale.width, 721, dtype=torch.float64)
    lines = []
    for basis, log in ((so2, turn), (scale, zoom)):
        group = basis.grid.group
        values = basis(group.exp(log.unsqueeze(-1)))
        coefficients = torch.rand(len(basis), dtype=torch.float64, generator=generator) * 2 - 1
        lines.append(Line(log, values, coefficients, group.log(basis.grid.elements)[:, 0]))
    where = sphere.ball(_SIZE)
    balls = tuple(_ball(n, where) for n in _COUNTS)
    return Data((lines[0], lines[1]), where, balls, sphere.on_ball(where, texture))


def _ball(n: int, where: sphere.Ball) -> Balls:
    basis = SplineBasis(repulsion(Sphere(), n))
    points = _spiral(max(2500, 8 * n // 5))
    coefficients = basis.fit(points, texture(points))
    few = torch.zeros(n, 1, dtype=torch.float64)
    few[_apart(basis)] = 1 / float(basis(basis.grid.elements[:1])[0, 0])
    every = torch.ones(n, 1, dtype=torch.float64)  # all ones give the splines' sum
    picture = sphere.on_ball(where, lambda at: sphere.spline(basis, torch.cat((few, every, coefficients), -1), at))
    return Balls(n, basis.grid.elements, picture[..., 0], picture[..., 1], picture[..., 2:])


def _apart(basis: SplineBasis) -> list[int]:
    """Return splines that do not overlap, the ones nearest the reader first, at most seven."""
    chosen: list[int] = []
    distance = math.sqrt(2) * 2 * basis.reach  # supports are squares: their corners
    facing = (basis.grid.elements @ sphere.CAMERA[2]).argsort(descending=True).tolist()
    for i in facing:
        near = (basis.grid.elements[chosen] @ basis.grid.elements[i]).clamp(-1, 1).acos()
        if len(chosen) < 7 and bool((near > max(distance, 0.7)).all()):
            chosen.append(i)
    return chosen


def _spiral(n: int) -> Tensor:
    """Return n points that leave no part of the sphere without one."""
    i = torch.arange(n, dtype=torch.float64)
    return Sphere().from_angles((1 - (2 * i + 1) / n).acos(), math.pi * (1 + math.sqrt(5)) * i)


def texture(points: Tensor) -> Tensor:
    """Return a colour for every point of the sphere: patches, bands and fine stripes, so that detail can get lost."""
    x, y, z = points.unbind(-1)
    patches = torch.sin(4 * x + 2 * torch.sin(3 * y)) * torch.cos(4 * y - 2 * z)
    bands = torch.sin(9 * z + 2 * x * y)
    stripes = torch.sin(34 * (x - 0.6 * y) + 5 * z) * (torch.exp(-8 * (1 - z).square()) + 0.35)
    red = 0.62 + 0.22 * patches + 0.14 * stripes
    green = 0.58 + 0.06 * patches + 0.16 * bands + 0.14 * stripes
    blue = 0.55 - 0.24 * patches + 0.12 * bands
    return torch.stack((red, green, blue), -1).clamp(0, 1)


def draw(data: Data, theme: Theme) -> Figure:
    """Draw the figure."""
    figure = canvas(PAGE, 7.5)
    rows = figure.add_gridspec(3, 1, height_ratios=(1, 1, 5.6), hspace=0.42)
    ticks = (
        ([-math.pi, -math.pi / 2, 0, math.pi / 2, math.pi], ["−π", "−π/2", "0", "π/2", "π"], r"$\theta$"),
        ([i * 0.5 * math.log(2) for i in (-2, 0, 2, 4, 6)], ["½", "1", "2", "4", "8"], "$s$"),
    )
    names = ("SO(2), $N = 8$", "$\\mathbb{R}^{+}$, $N = 6$")
    for row, (line, (places, labels, variable), name) in enumerate(zip(data.lines, ticks, names, strict=True)):
        pair = rows[row].subgridspec(1, 2, wspace=0.14)
        partition, spline = figure.add_subplot(pair[0]), figure.add_subplot(pair[1])
        _partition(partition, line, theme)
        _random(spline, line, theme)
        partition.set_title(f"{name}: splines and their sum", loc="left")
        spline.set_title(f"{name}: a random spline", loc="left")
        for axes in (partition, spline):
            axes.set_xticks(places, labels)
            axes.set_xlim(float(line.at[0]), float(line.at[-1]))
            axes.set_xlabel(variable, labelpad=2)
    _spheres(figure, rows[2].subgridspec(3, 4, wspace=0.02, hspace=0.14), data, theme)
    return figure


def _partition(axes: Axes, line: Line, theme: Theme) -> None:
    at = pixels(line.at)
    for values in line.basis.T:
        axes.plot(at, pixels(values), color=theme.series[0], linewidth=0.8)
        axes.fill_between(at, pixels(values), color=theme.series[0], alpha=0.10, linewidth=0)
    axes.plot(at, pixels(line.basis.sum(-1)), color=theme.ink)
    axes.plot(pixels(line.centres), np.zeros(len(line.centres)), "o", color=theme.centre, clip_on=False)
    axes.set_ylim(0, 1.12)
    axes.set_yticks([0, 1])


def _random(axes: Axes, line: Line, theme: Theme) -> None:
    at = pixels(line.at)
    axes.axhline(0, color=theme.faint, linewidth=0.6)
    for values, c in zip(line.basis.T, line.coefficients, strict=True):
        axes.fill_between(at, pixels(values * c), color=theme.series[0], alpha=0.14, linewidth=0)
    axes.plot(at, pixels(line.basis @ line.coefficients), color=theme.positive)
    axes.plot(pixels(line.centres), pixels(line.coefficients), "o", color=theme.centre, clip_on=False)
    axes.set_ylim(-1.1, 1.1)
    axes.set_yticks([-1, 0, 1])


def _spheres(figure: Figure, grid: GridSpecBase, data: Data, theme: Theme) -> None:
    shade = Normalize(0.5, 1.5)
    single = LinearSegmentedColormap.from_list("amount", [theme.solid, theme.series[0]])
    about_one = LinearSegmentedColormap.from_list("sum", [theme.negative, "white", theme.positive])
    for column, one in enumerate(data.balls):
        places = [figure.add_subplot(grid[row, column]) for row in (0, 1, 2)]
        sphere.show(places[0], data.where, single(one.single)[..., :3])
        sphere.show(places[1], data.where, about_one(shade(one.total))[..., :3])
        sphere.dots(places[1], one.centres, theme, 50 / math.sqrt(one.n) if one.n < 5000 else 0.12)
        sphere.show(places[2], data.where, one.rebuilt)
        places[0].set_title(f"$S^2$, $N = {one.n}$", pad=2)
        if column == 0:
            for place, words in zip(places, ("single splines", "sum of all", "texture rebuilt"), strict=True):
                place.text(-0.04, 0.5, words, transform=place.transAxes, rotation=90, ha="right", va="center")
    bar, original = (figure.add_subplot(grid[row, 3]) for row in (1, 2))
    bar.set_axis_off()
    sphere.show(original, data.where, data.texture)
    original.set_title("texture itself", pad=2)
    inset = bar.inset_axes((0.12, 0.12, 0.07, 0.76))
    scale = figure.colorbar(ScalarMappable(shade, about_one), cax=inset, ticks=[0.5, 1.0, 1.5])
    scale.outline.set_visible(False)
    inset.set_ylabel("sum of all splines", labelpad=2)
