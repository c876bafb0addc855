"""The sphere seen from one side, pixel by pixel: sharper and faster than a mesh of triangles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from liespline.groups import SO3, Sphere
from liespline.splines import SplineBasis

from .style import Pixels, Theme, bare, pixels

_LIGHT = torch.tensor([-0.45, 0.55, 0.70], dtype=torch.float64)


def _camera() -> Tensor:
    """Return the rotation from the sphere's axes to right, up and towards the reader: z is up, tilted to the reader."""
    flat = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    tilt = SO3().exp(torch.tensor([math.radians(32), 0.0, 0.0], dtype=torch.float64))
    turn = SO3().exp(torch.tensor([0.0, 0.0, math.radians(-35)], dtype=torch.float64))
    return tilt @ flat @ turn


CAMERA = _camera()


class Ball(NamedTuple):
    """The pixels of a ball: the points of the sphere there, how opaque and how lit they are."""

    points: Tensor  # (P, 3), of the pixels that see the sphere
    inside: Tensor  # (size, size)
    cover: Pixels
    light: Pixels


def ball(size: int) -> Ball:
    """Return the ball of the unit sphere in a picture of size × size pixels."""
    axis = (torch.arange(size, dtype=torch.float64) + 0.5) / size * 2 - 1
    up, right = torch.meshgrid(-axis * 1.02, axis * 1.02, indexing="ij")
    square = right**2 + up**2
    inside = square < 1
    towards = (1 - square).clamp_min(0).sqrt()
    seen = torch.stack((right, up, towards), -1)
    cover = ((1 - square.sqrt()) * size / 2).clamp(0, 1)
    light = (seen @ (_LIGHT / _LIGHT.norm())).clamp_min(0)
    return Ball(seen[inside] @ CAMERA, inside, pixels(cover), pixels(light))


def on_ball(where: Ball, f: Callable[[Tensor], Tensor]) -> Pixels:
    """Return f `(P, 3)` → `(P, *rest)` at every pixel of the ball, 0 beside it; f sees one small patch at a time."""
    row, column = (index // 16 for index in where.inside.nonzero().T)
    tile = row * (len(where.inside) // 16 + 1) + column
    order = tile.argsort(stable=True)
    sizes = tile[order].unique_consecutive(return_counts=True)[1].tolist()
    values = torch.cat([f(part) for part in where.points[order].split(sizes)])
    picture = torch.zeros(*where.inside.shape, *values.shape[1:], dtype=torch.float64)
    picture[where.inside] = torch.empty_like(values).index_copy_(0, order, values).double()
    return pixels(picture)


def spline(basis: SplineBasis, coefficients: Tensor, at: Tensor) -> Tensor:
    """Return Σ_i c_i B_i on a patch of the sphere, `(P, *rest)`; only splines that reach the patch are evaluated."""
    middle = at.mean(0) / at.mean(0).norm()
    far = (at @ middle).clamp(-1, 1).acos().max() + math.sqrt(2) * basis.reach  # supports are squares: their corners
    near = (basis.grid.elements @ middle).clamp(-1, 1).acos() < far
    return basis(at, basis.grid.elements[near]) @ coefficients[near]


def show(axes: Axes, where: Ball, colours: Pixels) -> None:
    """Draw colours `(size, size, 3)` on the ball, lit from above left."""
    lit = colours * (0.72 + 0.28 * where.light[..., None]) + 0.10 * where.light[..., None] ** 12
    picture = np.concatenate((lit.clip(0, 1), where.cover[..., None]), -1)
    axes.imshow(picture, extent=(-1.02, 1.02, -1.02, 1.02), interpolation="antialiased")
    axes.set_xlim(-1.06, 1.06)
    axes.set_ylim(-1.06, 1.06)
    bare(axes)


def dots(axes: Axes, points: Tensor, theme: Theme, size: float) -> None:
    """Draw the points that face the reader."""
    seen = points @ CAMERA.T
    seen = seen[seen[:, 2] > 0.02]
    axes.scatter(pixels(seen[:, 0]), pixels(seen[:, 1]), s=size, color=theme.centre, linewidths=0)


def curve(axes: Axes, points: Tensor, colour: str, width: float = 0.8, hidden: float = 0.0) -> None:
    """Draw a curve of points on or off the sphere; what lies behind it is faint, or left out."""
    seen = points @ CAMERA.T
    behind = (seen[:, 2] < 0) & (seen[:, :2].norm(dim=-1) < 1)
    for mask, alpha in ((behind, 1.0), (~behind, hidden)):
        if alpha > 0:
            masked = seen[:, :2].masked_fill(mask.unsqueeze(-1), float("nan"))
            axes.plot(pixels(masked[:, 0]), pixels(masked[:, 1]), color=colour, linewidth=width, alpha=alpha)


def ring(centre: Tensor, radius: float) -> Tensor:
    """Return the circle of all points at one distance ‖Log‖ from a centre."""
    angle = torch.linspace(0, 2 * math.pi, 97, dtype=torch.float64)
    around = radius * torch.stack((angle.cos(), angle.sin()), -1)
    return Sphere().product(centre, Sphere().exp(around))
