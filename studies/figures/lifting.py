"""Lifting and group correlation of a simple image: faces as lines in SE(2), as blobs in R² ⋊ R⁺ (gccnnoverview)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from liespline.grids import Grid, disc, lattice, local, uniform
from liespline.groups import SO2, Scale
from liespline.nn import GConv, Lift, Project
from liespline.splines import SplineBasis

from . import stack
from .style import PAGE, Theme, canvas, framed, pixels

_SIZE = 97


class Poses(NamedTuple):
    """An image, its features on the group, the response of a kernel that expects a face, and where that peaks."""

    name: str
    image: Tensor
    lifted: Tensor
    response: Tensor
    found: tuple[tuple[int, int, float], ...]  # row, column, element
    projected: Tensor
    grid: Grid


def prepare() -> tuple[Poses, Poses]:
    """Run the library's own layers on two images of two faces each."""
    return _turned_faces(), _zoomed_faces()


@torch.no_grad()
def _turned_faces() -> Poses:
    grid = uniform(SO2(), 8)
    lift = Lift(1, 1, 7, grid, padding="same", bias=False)
    centres = lift.x_basis.grid.elements
    # a bar along the columns: positive on the middle row of centres, negative beside it
    bar = torch.where(centres[:, 0] == 0, 1.0, torch.where(centres[:, 0].abs() == 1, -0.55, 0.0))
    lift.weight.copy_(bar)
    at = stack.square(_SIZE, (_SIZE - 1) / 2)
    turns = (([2.0, -24.0], 0.0), ([-2.0, 22.0], 3 * math.pi / 4))
    image = sum(_strokes(grid.group.pull(_element(h), at - torch.tensor(x))) for x, h in turns)
    assert isinstance(image, Tensor)
    basis = SplineBasis(disc(11, spacing=3.0))
    match = GConv(1, 1, 43, grid, x_basis=basis, h_basis=SplineBasis(grid, degree=1), padding="same", bias=False)
    _expect(match, lift, _strokes(stack.square(43, 21)), origin=0)
    return _poses("SE(2)", image, lift, match, apart=20)


@torch.no_grad()
def _zoomed_faces() -> Poses:
    grid = uniform(Scale(2), 5, spacing=0.5 * math.log(2))
    x_basis = SplineBasis(disc(7))
    lift = Lift(1, 1, 9, grid, x_basis=x_basis, padding="same", bias=False)
    square = x_basis.grid.elements.square().sum(-1)
    blob = (-square / 2.2).exp()
    surround = (-square / 7).exp()
    lift.weight.copy_(blob / blob.sum() - surround / surround.sum())
    at = stack.square(_SIZE, (_SIZE - 1) / 2)
    zooms = (([-20.0, -27.0], 1.0), ([9.0, 13.0], 2.0))
    image = sum(_discs(grid.group.pull(_element(h), at - torch.tensor(x))) for x, h in zooms)
    assert isinstance(image, Tensor)
    basis = SplineBasis(lattice(2, 9, spacing=2.0))
    relative = SplineBasis(local(Scale(2), 5, grid.spacing), degree=1)
    match = GConv(1, 1, 25, grid, x_basis=basis, h_basis=relative, padding="same", bias=False)
    _expect(match, lift, _discs(stack.square(25, 12)), origin=0)
    return _poses("R2R+", image, lift, match, apart=16)


def _element(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float64)


def _expect(match: GConv, lift: Lift, face: Tensor, origin: int) -> None:
    """Set the kernel to the features of an upright face, projected on the spline basis: the pattern it looks for."""
    assert match.h_basis is not None
    features = lift(face[None, None].float()).relu()[0, 0].double()  # (N_h, rows, columns)
    half = (len(face) - 1) / 2
    on_space = match.x_basis(stack.square(len(face), half))  # (rows, columns, N_x)
    on_group = match.h_basis(match.grid.group.relative(match.grid.elements[origin], match.grid.elements))
    weight = torch.einsum("ayx,yxi,aj->ij", features, on_space, on_group)
    match.weight.copy_(weight - weight.mean())


def _poses(name: str, image: Tensor, lift: Lift, match: GConv, apart: int) -> Poses:
    lifted = lift(image[None, None].float()).relu()
    response = match(lifted).relu()
    projected = Project("max", match.grid)(response)[0, 0]
    left, found = response[0, 0].clone(), []
    for _ in range(2):  # the strongest pose, and the strongest one at another place
        level, row, column = (int(i) for i in torch.unravel_index(left.argmax(), left.shape))
        found.append((row, column, float(match.grid.elements[level, 0])))
        left[:, max(row - apart, 0) : row + apart, max(column - apart, 0) : column + apart] = 0
    return Poses(name, image, lifted[0, 0], response[0, 0], tuple(found), projected, match.grid)


def _strokes(points: Tensor) -> Tensor:
    """Return a face of soft lines, known at every point `(*space, 2)`."""
    y, x = points[..., 0], points[..., 1]
    outline = torch.exp(-((torch.hypot(x / 0.82, y) - 18) ** 2) / 2.2)
    eyes = torch.exp(-((x.abs() - 6) ** 2) / 9 - (y + 6) ** 2 / 2)
    nose = torch.exp(-(x**2) / 2 - (y - 1) ** 2 / 14)
    mouth = torch.exp(-((torch.hypot(x, y + 1) - 10.5) ** 2) / 2) * torch.sigmoid(2 * (y - 5))
    return (outline + eyes + nose + mouth).clamp(max=1)


def _discs(points: Tensor) -> Tensor:
    """Return a face of soft discs: two eyes, a nose, and a larger mouth."""
    face = torch.zeros(points.shape[:-1], dtype=points.dtype)
    for row, column, radius in ((-5.0, -5.0, 1.6), (-5.0, 5.0, 1.6), (-0.5, 0.0, 1.6), (6.0, 0.0, 3.2)):
        distance = (points - torch.tensor([row, column], dtype=points.dtype)).norm(dim=-1)
        face = face + torch.sigmoid(3 * (radius - distance) / radius * 1.6)
    return face.clamp(max=1)


def draw(data: tuple[Poses, Poses], theme: Theme) -> Figure:
    """Draw both rows."""
    figure = canvas(PAGE, 4.1)
    axes = figure.subplots(2, 4, width_ratios=(1, 1.15, 1.15, 1), gridspec_kw={"wspace": 0.16, "hspace": 0.10})
    for row, poses in enumerate(data):
        turning = isinstance(poses.grid.group, SO2)
        elements = poses.grid.elements[:, 0].tolist()
        shades = [theme.around(e / (2 * math.pi) % 1) if turning else theme.upward(math.log2(e) / 2) for e in elements]
        labels = [f"{math.degrees(e) % 360:.0f}°" if turning else f"{e:.3g}" for e in elements]
        colours = [shade[:3] for shade in shades]
        image, lifted, response, poses_at = axes[row]
        image.imshow(pixels(poses.image), cmap=theme.sequential, vmax=1.6)
        framed(image, theme)
        image.set_ylabel("SE(2): lines" if turning else "$\\mathbb{R}^2 \\rtimes \\mathbb{R}^{+}$: blobs")
        gap = 0.3 if turning else 0.46
        stack.draw(lifted, poses.lifted, colours, labels, theme, gap=gap)
        threshold = 0.5 * float(poses.response.max())
        stack.draw(response, (poses.response - threshold).clamp_min(0), colours, labels, theme, gap=gap)
        poses_at.imshow(pixels(poses.image), cmap=theme.sequential, vmax=3)
        framed(poses_at, theme)
        for found in poses.found:
            _mark(poses_at, found, turning, colours[elements.index(found[2])])
    titles = ("image $f(x)$", "lifted to $(x, h)$", "correlated with a face kernel", "poses found")
    for place, title in zip(axes[0], titles, strict=True):
        place.set_title(title)
    return figure


def _mark(axes: Axes, found: tuple[int, int, float], turning: bool, colour: tuple[float, float, float]) -> None:
    row, column, element = found
    radius = 19.5 if turning else 10.5 * element
    axes.add_patch(Circle((column, row), radius, fill=False, edgecolor=colour, lw=1.6))
    if turning:  # the crown of the head
        up, right = -radius * math.cos(element), -radius * math.sin(element)
        axes.plot([column, column + right], [row, row + up], color=colour, lw=1.6)
        axes.plot(column + right, row + up, "o", color=colour, markersize=4)
    else:
        axes.text(column, row + radius + 5.5, f"×{element:.2g}", color=colour, ha="center", va="center")
