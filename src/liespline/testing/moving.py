"""Maps moved about their centre by cubic splines: how features are compared between samples."""

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from ..grids.regular import centred
from ..groups import Group
from ..splines import bspline

EDGE = 4
"""By how many samples maps are continued: 0.27⁴ < 1e-2 is what their splines feel of what lies beyond."""


def moved(
    images: Tensor, group: Group, element: Tensor, size: Sequence[int] | None = None, *, back: bool = False
) -> Tensor:
    """The images f(h⁻¹x) about their centre, or `back` f(hx), zeros moving in: (B, C, *size), one element for all.

    f is the cubic spline through the samples, so quarter turns are exact to rounding and smooth images keep
    three digits, where torch's own bicubic `grid_sample` keeps less than two. A smaller `size` is the middle of it.
    """
    space, size = images.shape[2:], tuple(size or images.shape[2:])
    if group.space_dim != len(space):
        raise ValueError(f"{group!r} acts on {group.space_dim} dimensions; the images have {len(space)}")
    axes, h = torch.eye(group.space_dim, dtype=torch.float64), element.double().cpu()
    source = group.act if back else group.pull
    matrix = source(h, axes) - source(h, torch.zeros_like(axes))  # its rows are where the axes go
    return _read(images, centred(size, device=images.device) @ matrix.to(images.device))


def shifted(images: Tensor, step: float, size: Sequence[int] | None = None) -> Tensor:
    """The images f(x − t) of the same splines, t of `step` samples along every axis: (B, C, *size)."""
    return _read(images, centred(size or images.shape[2:], device=images.device) - step)


def continued(maps: Tensor) -> Tensor:
    """Maps with some samples more around them, 2f(0) − f(k) at the k-th beyond the edge.

    Splines that are zero there would be felt: turned maps of 5×5 samples by 2 % half-way to the edge, now by 0.2 %.
    """
    for axis in range(2, maps.ndim):
        n = maps.shape[axis]
        more = min(n - 1, EDGE)
        first, last = maps.narrow(axis, 0, 1), maps.narrow(axis, n - 1, 1)
        before, after = (maps.narrow(axis, start, more).flip(axis) for start in (1, n - 1 - more))
        maps = torch.cat([2 * first - before, maps, 2 * last - after], axis)
    return maps


def interior(space: Sequence[int], group: Group | None = None, element: Tensor | None = None) -> Tensor:
    """The disc of half the map's size, where it lies and where h⁻¹ leads it: booleans (*space).

    Layers see the border of an image, and the border does not move with it: maps of 21 samples, padded with zeros
    twice, differ five times as much in nine tenths of their radius as in half of it.
    """
    points = centred(space)
    radius = (min(space) - 1) / 4 + 1e-9
    inside = points.norm(dim=-1) <= radius
    if group is not None and element is not None:
        inside &= group.pull(element.double().cpu(), points).norm(dim=-1) <= radius
    return inside


def _read(images: Tensor, points: Tensor) -> Tensor:
    """The splines through images at points (*size, d), in samples from the centre: (B, C, *size)."""
    device, space, size = images.device, images.shape[2:], points.shape[:-1]
    centre = torch.tensor([(n - 1) / 2 for n in space], dtype=torch.float64, device=device)
    where = points.flatten(0, -2) + centre  # (P, d), in samples from the first one
    flat = coefficients(images).flatten(2)
    limits = torch.tensor(space, device=device)
    strides = torch.tensor([math.prod(space[axis + 1 :]) for axis in range(len(space))], device=device)
    # The four splines of each axis that are not zero at a point: their rows and values, (P, d, 4).
    index = where.floor().long().unsqueeze(-1) + torch.arange(-1, 3, device=device)
    inside = (index >= 0) & (index < limits[:, None])
    values = (bspline(where.unsqueeze(-1) - index, 3) * inside).to(images)
    rows = index.clamp(min=0).minimum(limits[:, None] - 1) * strides[:, None]
    out = flat.new_zeros(*flat.shape[:2], len(where))
    for steps in itertools.product(range(4), repeat=len(space)):
        row = sum(rows[:, axis, step] for axis, step in enumerate(steps))
        value = math.prod(values[:, axis, step] for axis, step in enumerate(steps))
        out += flat[..., row] * value
    outside = ((where < -0.5) | (where > limits - 0.5)).any(-1)
    return out.masked_fill(outside, 0).unflatten(-1, size)


def coefficients(images: Tensor) -> Tensor:
    """Those of the cubic splines through images (B, C, *space), zero around them."""
    for axis, n in enumerate(images.shape[2:], 2):
        images = torch.tensordot(images, _inverse(n).to(images), dims=([axis], [1])).movedim(-1, axis)
    return images


@lru_cache(maxsize=16)
def _inverse(size: int) -> Tensor:
    """The matrix from samples to the coefficients of the cubic spline through them, zero beyond both ends."""
    offsets = torch.arange(size, dtype=torch.float64)
    return torch.linalg.inv(bspline(offsets - offsets.unsqueeze(-1), 3))
