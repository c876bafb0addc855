"""A set of group elements and a kernel on the group, moved by h (figures reprSO2 and reprR2Rp)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from liespline.grids import Grid
from liespline.groups import SO2, Element, Group, Scale, Semidirect, Translation
from liespline.splines import SplineBasis

from . import stack
from .style import PAGE, Theme, canvas

_HALF = 5.2
_STEP = 0.5 * math.log(2)


class Data(NamedTuple):
    """A face as elements of R² ⋊ H, moved by each h, and the kernel on the group that expects it."""

    names: tuple[str, ...]
    sets: tuple[Element, ...]
    kernels: tuple[Tensor, ...]  # each (levels, rows, columns)
    levels: Tensor
    labels: tuple[str, ...]


def prepare_turns() -> Data:
    """A face as strokes with a direction, under SO(2); directions and turns go round the whole circle."""
    turns = torch.tensor([0, 90, 180, 270], dtype=torch.float64).deg2rad().unsqueeze(-1)
    levels = torch.arange(8, dtype=torch.float64).mul(45).deg2rad().unsqueeze(-1)
    names = tuple(f"$h = {round(math.degrees(a))}°$" for a in turns[:, 0])
    labels = tuple(f"{math.degrees(a):g}°" for a in levels[:, 0])
    return _moved(SO2(), _lines(), turns, names, levels, labels, scale=(0.75, math.radians(45)))


def prepare_zooms() -> Data:
    """A face as blobs with a size, under R⁺."""
    zooms = (_STEP * torch.tensor([0, 1, 2, 3], dtype=torch.float64)).exp().unsqueeze(-1)
    levels = (_STEP * torch.arange(-2, 7, dtype=torch.float64)).exp().unsqueeze(-1)
    names = tuple(f"$h = {float(s):.3g}$" for s in zooms[:, 0])
    labels = tuple(f"{float(s):.2g}" for s in levels[:, 0])
    return _moved(Scale(2), _blobs(), zooms, names, levels, labels, scale=(0.36, _STEP))


def _moved(
    group: Group, face: Element, moves: Tensor, names: tuple[str, ...], levels: Tensor, labels: tuple[str, ...],
    *, scale: tuple[float, float],
) -> Data:  # fmt: skip
    """Move the set by left multiplication, and the kernel by reading it at h⁻¹."""
    affine = Semidirect(group)
    origin = torch.zeros(2, dtype=torch.float64)
    ones = torch.ones(len(face.x), dtype=torch.float64)
    on_space = SplineBasis(Grid(Translation(2), face.x, ones, scale[0]), degree=2)
    on_group = SplineBasis(Grid(group, face.h, ones, scale[1]), degree=2)
    points = stack.square(90, _HALF)
    sets, kernels = [], []
    for h in moves:
        move = affine.join(origin, h)
        sets.append(affine.split(affine.product(move, affine.join(*face))))
        back = affine.inverse(move)
        space = on_space(affine.act(back, points))  # (rows, columns, elements)
        heights = on_group(group.product(affine.split(back).h, levels))
        kernels.append(torch.einsum("yxi,li->lyx", space, heights))
    return Data(names, tuple(sets), tuple(kernels), levels, labels)


def _lines() -> Element:
    """Return a face of strokes: places (row, column) and directions, counter-clockwise along outline and mouth."""
    around = torch.arange(16, dtype=torch.float64) * (2 * math.pi / 16)
    outline = 4.1 * torch.stack((-around.sin(), around.cos()), -1)
    smile = torch.tensor([215, 240, 270, 300, 325], dtype=torch.float64).deg2rad()
    mouth = 2.4 * torch.stack((-smile.sin(), smile.cos()), -1)
    rest = torch.tensor([[-1.3, -1.5], [-1.3, 1.5], [0.2, 0.0]], dtype=torch.float64)
    ahead = torch.tensor([0.0, 0.0, math.pi / 2], dtype=torch.float64)  # eyes lie, the nose stands
    angles = torch.cat((around + math.pi / 2, smile + math.pi / 2, ahead)).unsqueeze(-1)
    return Element(torch.cat((outline, mouth, rest)), SO2().exp(angles))


def _blobs() -> Element:
    """Return a small face of discs: places (row, column) and sizes."""
    places = [[0.0, 0.0], [-0.55, -0.6], [-0.55, 0.6], [0.2, 0.0], [0.7, -0.55], [0.88, 0.0], [0.7, 0.55]]
    sizes = [[2.0 * math.sqrt(2)], *([[math.sqrt(0.5)]] * 2), *([[0.5]] * 4)]
    return Element(torch.tensor(places, dtype=torch.float64), torch.tensor(sizes, dtype=torch.float64))


def draw_turns(data: Data, theme: Theme) -> Figure:
    """Draw the strokes and the kernel under SO(2)."""

    def strokes(axes: Axes, elements: Element) -> None:
        for (row, column), (angle,) in zip(elements.x.tolist(), elements.h.tolist(), strict=True):
            # along the stroke: one step in the columns' direction, turned
            down, right = (0.62 * v for v in SO2().act(torch.tensor([angle]), torch.tensor([0.0, 1.0])).tolist())
            colour = theme.around(angle / (2 * math.pi) % 1)
            ends = [column - right, column + right], [row - down, row + down]
            axes.plot(*ends, color=colour, lw=2.2, solid_capstyle="round")
            axes.plot(column + right, row + down, "o", color=theme.ink, markersize=2.4)  # where it points

    colours = [theme.around(float(a) / (2 * math.pi) % 1)[:3] for a in data.levels[:, 0]]
    return _draw(data, theme, strokes, colours, "direction")


def draw_zooms(data: Data, theme: Theme) -> Figure:
    """Draw the blobs and the kernel under R⁺."""
    low, high = (float(data.levels[i].log()) for i in (0, -1))

    def shade(size: float) -> tuple[float, float, float]:
        red, green, blue, _ = theme.upward((math.log(size) - low) / (high - low))
        return red, green, blue

    def discs(axes: Axes, elements: Element) -> None:
        for (row, column), (size,) in zip(elements.x.tolist(), elements.h.tolist(), strict=True):
            axes.add_patch(Circle((column, row), 0.55 * size, fill=False, edgecolor=shade(size), lw=1.6))
            axes.plot(column, row, "o", color=theme.ink, markersize=1.6)

    return _draw(data, theme, discs, [shade(float(s)) for s in data.levels[:, 0]], "scale")


def _draw(
    data: Data,
    theme: Theme,
    mark: Callable[[Axes, Element], None],
    colours: list[tuple[float, float, float]],
    word: str,
) -> Figure:
    figure = canvas(PAGE, 4.0)
    axes = figure.subplots(2, len(data.names), height_ratios=(1, 1.18), gridspec_kw={"wspace": 0.04, "hspace": 0.02})
    top = max(float(kernel.max()) for kernel in data.kernels)
    for column, (name, elements, kernel) in enumerate(zip(data.names, data.sets, data.kernels, strict=True)):
        above, below = axes[0, column], axes[1, column]
        mark(above, elements)
        above.set_xlim(-_HALF - 0.6, _HALF + 0.6)
        above.set_ylim(_HALF + 0.6, -_HALF - 0.6)
        above.set_aspect("equal")
        above.set_axis_off()
        above.set_title(name)
        labels = data.labels if column == len(data.names) - 1 else [""] * len(data.labels)
        stack.draw(below, kernel, colours, labels, theme, top=top)
    beside = {"rotation": 90, "va": "center", "ha": "right"}
    axes[0, 0].text(-0.02, 0.5, "$h \\cdot S$, $S \\subset G$", transform=axes[0, 0].transAxes, **beside)
    axes[1, 0].text(-0.02, 0.5, "kernel $L_h K$", transform=axes[1, 0].transAxes, **beside)
    axes[1, -1].text(0.99, 1.0, word, transform=axes[1, -1].transAxes, color=theme.muted, fontsize=6, ha="right")
    return figure
