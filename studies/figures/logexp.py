"""Log takes the sphere to a flat tangent plane, Exp takes it back (figure LogExpMap)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.patheffects import withStroke
from torch import Tensor

from liespline.groups import Sphere

from . import sphere
from .style import PAGE, Theme, canvas, pixels

_TICKS = 12
_REACH = 1.5


class Data(NamedTuple):
    """Curves in the tangent plane at the pole, and some points with their vectors."""

    where: sphere.Ball
    lines: tuple[Tensor, ...]
    vectors: Tensor


def prepare() -> Data:
    """Lay a lattice of lines on the tangent plane; Exp carries each of them to the sphere."""
    along = torch.linspace(-_REACH, _REACH, 181, dtype=torch.float64)
    lines = []
    for i in range(-_TICKS // 2, _TICKS // 2 + 1):
        across = torch.full_like(along, 2 * _REACH * i / _TICKS)
        lines += [torch.stack((along, across), -1), torch.stack((across, along), -1)]
    vectors = torch.tensor([[1.0, -0.25], [0.25, -1.25], [-1.0, -0.75], [-0.75, 0.5]], dtype=torch.float64)
    return Data(sphere.ball(420), tuple(lines), vectors)


def _tangent(screen: Tensor) -> Tensor:
    """Return the algebra vector that leads from the pole to the right and up, as the reader sees the sphere."""
    right, up = screen.unbind(-1)
    axes = sphere.CAMERA[:, :2]  # where x and y go on the screen; up there is the way away from the reader
    x = right * axes[0, 0] - up * axes[2, 0] / axes[2, :2].norm()
    y = right * axes[0, 1] - up * axes[2, 1] / axes[2, :2].norm()
    return torch.stack((-y, x), -1)


def draw(data: Data, theme: Theme) -> Figure:
    """Draw the tangent plane, the sphere, and the maps between them."""
    figure = canvas(PAGE * 0.86, 2.95)
    plane, between, globe = figure.subplots(1, 3, width_ratios=(1, 0.42, 1), gridspec_kw={"wspace": 0.02})
    group = Sphere()
    sphere.show(globe, data.where, np.ones((*data.where.cover.shape, 1)) * to_rgb(theme.solid))
    halo = [withStroke(linewidth=2, foreground=theme.paper)]
    for line in data.lines:
        plane.plot(pixels(line[:, 0]), pixels(line[:, 1]), color=theme.muted, linewidth=0.5, alpha=0.7)
        sphere.curve(globe, group.exp(_tangent(line)), theme.muted, 0.5, hidden=0.12)
    share = torch.linspace(0, 1, 60, dtype=torch.float64).unsqueeze(-1)
    for number, (vector, colour) in enumerate(zip(data.vectors, theme.series, strict=False), 1):
        point = group.exp(_tangent(vector))
        right, up = vector.tolist()
        plane.annotate(
            "", (right, up), (0, 0),
            arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.3, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
        plane.text(1.17 * right, 1.17 * up, f"$v_{number}$", color=colour, ha="center", va="center", path_effects=halo)
        sphere.curve(globe, group.exp(share * group.log(point)), colour, 1.5, hidden=0.3)  # along Log of the point
        seen = sphere.CAMERA @ point
        globe.plot(float(seen[0]), float(seen[1]), "o", color=colour, markersize=4.5, alpha=1 if seen[2] > 0 else 0.4)
        globe.text(float(seen[0]) + 0.06, float(seen[1]) - 0.1, f"$n_{number}$", color=colour, path_effects=halo)
    pole = sphere.CAMERA @ group.identity(dtype=torch.float64)
    globe.plot(float(pole[0]), float(pole[1]), "o", color=theme.ink, markersize=3.5)
    globe.text(float(pole[0]) - 0.05, float(pole[1]) + 0.06, "$z$", ha="right")
    plane.plot(0, 0, "o", color=theme.ink, markersize=3.5)
    plane.set_aspect("equal")
    plane.set_axis_off()
    plane.set_title("tangent plane at $z$", pad=3)
    globe.set_title("$S^2 = SO(3)/SO(2)$", pad=3)
    _arrows(between, theme)
    return figure


def _arrows(axes: Axes, theme: Theme) -> None:
    axes.set_axis_off()
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    bend = math.tan(math.radians(16))
    for tail, head, y, label in ((0.08, 0.92, 0.58, "Exp"), (0.92, 0.08, 0.42, "Log")):
        arrow = FancyArrowPatch(
            (tail, y), (head, y), connectionstyle=f"arc3,rad={-bend}", arrowstyle="-|>", mutation_scale=11,
            color=theme.ink, linewidth=1.1,
        )  # fmt: skip
        axes.add_patch(arrow)
        axes.text(0.5, y + (0.13 if label == "Exp" else -0.13), label, ha="center", va="center", fontsize=9)
