"""Images and volumes moved about their centre: the one place that turns and scales pixels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from ..groups import Group
from ..splines import bspline


def resampled(
    images: Tensor,
    matrix: Tensor,
    size: Sequence[int] | None = None,
    mode: str = "bilinear",
    offset: Tensor | None = None,
) -> Tensor:
    """Images f(Ax + b) of their own matrices A (B, d, d), x in samples from the centre, zeros moving in: (B, C, *size).

    `offset` b (B, d) is zero if it is left out. Fast, for training and for making data sets; `moved` is the exact one.
    """
    space, size = images.shape[2:], tuple(size or images.shape[2:])
    old, new = (torch.tensor(n, dtype=matrix.dtype, device=matrix.device) / 2 for n in (space, size))
    theta = (matrix * new / old.unsqueeze(-1)).flip(-2, -1)  # torch counts axes from the last, in half images
    start = theta.new_zeros(theta.shape[:-1]) if offset is None else (offset / old).flip(-1)
    theta = torch.cat([theta, start.unsqueeze(-1)], -1).to(images)
    grid = torch.nn.functional.affine_grid(theta, [*images.shape[:2], *size], align_corners=False)
    return torch.nn.functional.grid_sample(images, grid, mode=mode, align_corners=False)


def sampled(images: Tensor, points: Tensor, mode: str = "bilinear") -> Tensor:
    """Images f at points (B, *size, d) of their own, in samples from the centre, zeros around: (B, C, *size)."""
    half = torch.tensor(images.shape[2:], dtype=points.dtype, device=points.device) / 2
    grid = (points / half).flip(-1).to(images)  # as torch counts: axes from the last, in half images
    return torch.nn.functional.grid_sample(images, grid, mode=mode, align_corners=False)


def splined(images: Tensor, matrix: Tensor) -> Tensor:
    """As `resampled`, of the cubic splines f through the images: half again as sharp as linear interpolation in 3-D.

    The four splines of an axis that reach a point are two pairs. Each pair is one linear interpolation of the
    coefficients, between its two, at w₁/(w₀ + w₁) of the way: 2^d of these, which torch does fast, for 4^d terms.
    """
    space = images.shape[2:]
    points = (lattice_points(images) @ matrix.to(images).mT).unflatten(1, space)
    first = torch.tensor([(n - 1) / 2 for n in space], device=images.device, dtype=images.dtype)
    cell = (points + first).floor() - first
    part = points - cell  # of the way from a sample to the next one
    w0, w1, w3 = (1 - part) ** 3 / 6, (part**3 / 2 - part**2) + 2 / 3, part**3 / 6
    pairs = ((w0 + w1, cell - 1 + w1 / (w0 + w1)), (1 - w0 - w1, cell + 1 + w3 / (1 - w0 - w1)))
    coefficients, out = _coefficients(images), torch.zeros_like(images)
    for chosen in itertools.product(pairs, repeat=len(space)):
        weights, where = (torch.stack([one[k][..., i] for i, one in enumerate(chosen)], -1) for k in (0, 1))
        out += weights.prod(-1).unsqueeze(1) * sampled(coefficients, where)
    outside = (points.abs() > first + 0.5).any(-1).unsqueeze(1)
    return out.masked_fill(outside, 0)


def lattice_points(images: Tensor) -> Tensor:
    """The places of the samples of images (B, C, *space), counted from the centre: (samples, d)."""
    axes = [torch.arange(n, device=images.device, dtype=images.dtype) - (n - 1) / 2 for n in images.shape[2:]]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)


def rotations(angles: Tensor) -> Tensor:
    """The matrices f(A x) that turn images counter-clockwise by these angles: (B, 2, 2)."""
    return torch.stack([angles.cos(), angles.sin(), -angles.sin(), angles.cos()], -1).view(-1, 2, 2)


def moved(images: Tensor, group: Group, element: Tensor, size: Sequence[int] | None = None) -> Tensor:
    """The images f(h⁻¹x) about their centre, zeros moving in: (B, C, *size), one element for all.

    f is the cubic spline through the samples, so quarter turns are exact to rounding and smooth images keep
    three digits, where torch's own bicubic `grid_sample` keeps less than two. A smaller `size` is the middle of it.
    """
    space, size = images.shape[2:], tuple(size or images.shape[2:])
    if group.space_dim != len(space):
        raise ValueError(f"{group!r} acts on {group.space_dim} dimensions; the images have {len(space)}")
    device = images.device
    axes = [torch.arange(n, dtype=torch.float64, device=device) - (n - 1) / 2 for n in size]
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).flatten(0, -2)  # (P, d)
    matrix = group.matrix(group.inverse(element.double().cpu())).to(device)
    centre = torch.tensor([(n - 1) / 2 for n in space], dtype=torch.float64, device=device)
    where = points @ matrix.T + centre  # in samples from the first one
    flat = _coefficients(images).flatten(2)
    limits = torch.tensor(space, device=device)
    strides = torch.tensor([math.prod(space[axis + 1 :]) for axis in range(len(space))], device=device)
    # The four splines of each axis that are not zero at a point: their rows and values, (P, d, 4).
    index = where.floor().long().unsqueeze(-1) + torch.arange(-1, 3, device=device)
    inside = (index >= 0) & (index < limits[:, None])
    values = (bspline(where.unsqueeze(-1) - index, 3) * inside).to(images)
    rows = index.clamp(min=0).minimum(limits[:, None] - 1) * strides[:, None]
    out = flat.new_zeros(*flat.shape[:2], len(points))
    for steps in itertools.product(range(4), repeat=len(space)):
        row = sum(rows[:, axis, step] for axis, step in enumerate(steps))
        value = math.prod(values[:, axis, step] for axis, step in enumerate(steps))
        out += flat[..., row] * value
    outside = ((where < -0.5) | (where > limits - 0.5)).any(-1)
    return out.masked_fill(outside, 0).unflatten(-1, size)


def _coefficients(images: Tensor) -> Tensor:
    """Those of the cubic splines through images (B, C, *space), zero around them."""
    for axis, n in enumerate(images.shape[2:], 2):
        images = torch.tensordot(images, _inverse(n).to(images), dims=([axis], [1])).movedim(-1, axis)
    return images


@lru_cache(maxsize=16)
def _inverse(size: int) -> Tensor:
    """The matrix from samples to the coefficients of the cubic spline through them, zero beyond both ends."""
    offsets = torch.arange(size, dtype=torch.float64)
    return torch.linalg.inv(bspline(offsets - offsets.unsqueeze(-1), 3))


def radii(space: Sequence[int]) -> Tensor:
    """The distance of each sample from the centre: (*space)."""
    axes = [torch.arange(n, dtype=torch.float64) - (n - 1) / 2 for n in space]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).norm(dim=-1)


def in_disc(images: Tensor, magnified: float = 1.0) -> tuple[Tensor, Tensor]:
    """Images (B, C, *space) as a part that is zero outside a disc, and the colour to lay under it.

    The disc is the largest that stays in view however it is turned, and magnified so many times; its edge is one
    sample wide. Moving the part and laying the same colour under it moves all that can be seen, and nothing else.
    """
    largest = (min(images.shape[2:]) - 1) / 2 / magnified
    disc = (largest + 0.5 - radii(images.shape[2:])).clamp(0, 1).to(images)
    colour = rim_colour(images, largest)
    return (images - colour) * disc, colour


def rim_colour(images: Tensor, largest: float | None = None) -> Tensor:
    """The mean colour of each image along the rim of its largest disc, two samples wide: (B, C, 1, …).

    What most likely lies around an image that is turned: black around black, tissue around tissue.
    """
    radius, largest = radii(images.shape[2:]), largest or (min(images.shape[2:]) - 1) / 2
    rim = ((radius <= largest) & (radius > largest - 2)).to(images)
    return (images * rim).sum(tuple(range(2, images.ndim)), keepdim=True) / rim.sum()


def magnification(group: Group, elements: Tensor) -> float:
    """How many times longer the elements (N, …) make a line at most."""
    return float(torch.linalg.matrix_norm(group.matrix(elements.double().cpu()), 2).max())


def shown(space: Sequence[int], group: Group, element: Tensor) -> Tensor:
    """Where a moved image shows what was inside the original's largest disc: booleans (*space).

    Layers see the border of an image, and the border does not move with it, so a tenth of the radius is left out.
    """
    axes = [torch.arange(n, dtype=torch.float64) - (n - 1) / 2 for n in space]
    points = torch.stack(torch.meshgrid(*axes, indexing="ij"), -1)
    radius = torch.tensor([max((n - 1) / 2, 0.5) for n in space], dtype=torch.float64)
    before = group.pull(element.double().cpu(), points)
    return ((points / radius).norm(dim=-1) <= 0.9) & ((before / radius).norm(dim=-1) <= 0.9)
