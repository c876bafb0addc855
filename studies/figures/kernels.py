"""Localised, scaled, atrous and deformable kernels on R², sampled, and on S² (figure kerneltypes)."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from liespline.grids import Grid, lattice, local
from liespline.groups import Sphere, Translation
from liespline.splines import SplineBasis

from . import sphere
from .style import PAGE, Pixels, Theme, canvas, framed, pixels

_HALF = 4.5
_COEFFICIENTS = 9
_TOP = 0.6


class Kernel(NamedTuple):
    """One kind of kernel, on the plane and on the sphere."""

    name: str
    flat: SplineBasis
    curved: SplineBasis
    fine: Pixels
    sampled: Pixels
    ball: Pixels


class Data(NamedTuple):
    """All of the figure's numbers."""

    kernels: tuple[Kernel, ...]
    where: sphere.Ball


def prepare() -> Data:
    """Evaluate the same nine coefficients in each kind of basis."""
    generator = torch.Generator().manual_seed(11)
    coefficients = torch.rand(_COEFFICIENTS, dtype=torch.float64, generator=generator) * 2 - 1
    shift = torch.rand(_COEFFICIENTS, 2, dtype=torch.float64, generator=generator) * 2 - 1
    where = sphere.ball(256)
    small, step = 0.24, 1.0
    kinds = {
        "localised": (_plane(step), step, _curved(small), small),
        "scaled": (_plane(2 * step), 2 * step, _curved(2 * small), 2 * small),
        "atrous": (_plane(2.5 * step), step, _curved(2.5 * small), small),
        "deformable": (_plane(2 * step, 1.1 * shift), step, _curved(2 * small, 1.1 * small * shift), small),
    }
    kernels = []
    for name, (plane, flat_scale, curve, curved_scale) in kinds.items():
        flat = SplineBasis(plane, scale=flat_scale, degree=2)
        curved = SplineBasis(curve, scale=curved_scale, degree=2)
        ball = sphere.on_ball(where, partial(sphere.spline, curved, coefficients))
        fine, sampled = (pixels(flat(_square(n)) @ coefficients) for n in (270, 9))
        kernels.append(Kernel(name, flat, curved, fine, sampled, ball))
    return Data(tuple(kernels), where)


def _square(n: int) -> Tensor:
    axis = ((torch.arange(n, dtype=torch.float64) + 0.5) / n * 2 - 1) * _HALF
    return torch.stack(torch.meshgrid(axis, axis, indexing="ij"), -1)


def _plane(spacing: float, shift: Tensor | float = 0.0) -> Grid:
    grid = lattice(2, 3, spacing=spacing)
    return Grid(Translation(2), grid.elements + shift, grid.weights, spacing)


def _curved(spacing: float, shift: Tensor | float = 0.0) -> Grid:
    """Return nine centres about a point that faces the reader, moved there from the reference point by the group."""
    group = Sphere()
    logs = group.log(local(group, (3, 3), spacing).elements) + shift
    front = group.from_angles(*(torch.tensor(math.radians(a), dtype=torch.float64) for a in (52, 40)))
    centres = group.product(front, group.exp(logs))
    return Grid(group, centres, torch.full((len(centres),), spacing**2, dtype=torch.float64), spacing)


def draw(data: Data, theme: Theme) -> Figure:
    """Draw the figure."""
    figure = canvas(PAGE, 5.35)
    places = figure.add_gridspec(3, len(data.kernels), wspace=0.06, hspace=0.06)
    for column, kernel in enumerate(data.kernels):
        plane, sampled, curved = (figure.add_subplot(places[row, column]) for row in range(3))
        plane.set_title(kernel.name)
        for axes, picture in ((plane, kernel.fine), (sampled, kernel.sampled)):
            extent = (-_HALF, _HALF, _HALF, -_HALF)
            axes.imshow(picture, cmap=theme.diverging, vmin=-_TOP, vmax=_TOP, extent=extent)
            framed(axes, theme)
            _circles(axes, kernel.flat, theme)
        colours = theme.on_bodies((kernel.ball / _TOP + 1) / 2)[..., :3]
        sphere.show(curved, data.where, colours)
        for centre in kernel.curved.grid.elements:
            sphere.curve(curved, sphere.ring(centre, kernel.curved.width / 2), theme.centre, 0.8)
        if column == 0:
            for axes, label in ((plane, "on $\\mathbb{R}^2$"), (sampled, "sampled")):
                axes.set_ylabel(label)
            curved.text(-0.045, 0.5, "on $S^2$", transform=curved.transAxes, rotation=90, ha="right", va="center")
    return figure


def _circles(axes: Axes, basis: SplineBasis, theme: Theme) -> None:
    for row, column in basis.grid.elements.tolist():
        axes.add_patch(Circle((column, row), basis.width / 2, fill=False, color=theme.centre, linewidth=0.8))
