"""Images and volumes moved by group elements, to see how a network follows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from ..groups import Group
from ..splines import bspline


def moved(images: Tensor, group: Group, element: Tensor) -> Tensor:
    """The images f(h⁻¹x) about their centre, zeros moving in: (B, C, *space), one element for all.

    f is the cubic spline through the samples, so quarter turns are exact to rounding and smooth images keep
    three digits, where torch's own bicubic `grid_sample` keeps less than two.
    """
    space = images.shape[2:]
    if group.space_dim != len(space):
        raise ValueError(f"{group!r} acts on {group.space_dim} dimensions; the images have {len(space)}")
    device = images.device
    axes = [torch.arange(n, dtype=torch.float64, device=device) - (n - 1) / 2 for n in space]
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)  # (P, d)
    matrix = group.matrix(group.inverse(element.double().cpu())).to(device)
    centre = torch.tensor([(n - 1) / 2 for n in space], dtype=torch.float64, device=device)
    where = points @ matrix.T + centre  # in samples from the first one
    corner = where.floor().long() - 1
    coefficients = images
    for axis, size in enumerate(space, 2):
        solve = _inverse(size).to(images)
        coefficients = torch.tensordot(coefficients, solve, dims=([axis], [1])).movedim(-1, axis)
    flat = coefficients.flatten(2)
    out = torch.zeros_like(flat)
    limits = torch.tensor(space, device=device)
    for step in itertools.product(range(4), repeat=len(space)):
        index = corner + torch.tensor(step, device=device)
        inside = ((index >= 0) & (index < limits)).all(-1)
        weight = bspline(where - index, 3).prod(-1) * inside
        row = torch.zeros(len(points), dtype=torch.long, device=device)
        for axis, size in enumerate(space):
            row = row * size + index[:, axis].clamp(0, size - 1)
        out += flat[..., row] * weight.to(images)
    outside = ((where < -0.5) | (where > limits - 0.5)).any(-1)
    return out.masked_fill(outside, 0).view_as(images)


@lru_cache(maxsize=16)
def _inverse(size: int) -> Tensor:
    """The matrix from samples to the coefficients of the cubic spline through them, zero beyond both ends."""
    offsets = torch.arange(size, dtype=torch.float64)
    return torch.linalg.inv(bspline(offsets - offsets.unsqueeze(-1), 3))


def shown(space: Sequence[int], group: Group, element: Tensor) -> Tensor:
    """Where a moved image shows what was inside the original's largest disc: booleans (*space).

    Layers see the border of an image, and the border does not move with it, so a tenth of the radius is left out.
    """
    axes = [torch.arange(n, dtype=torch.float64) - (n - 1) / 2 for n in space]
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    radius = torch.tensor([max((n - 1) / 2, 0.5) for n in space], dtype=torch.float64)
    before = group.pull(element.double().cpu(), points)
    return ((points / radius).norm(dim=-1) <= 0.9) & ((before / radius).norm(dim=-1) <= 0.9)
