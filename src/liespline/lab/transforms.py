"""Images and volumes transformed about their centre: the one place that rotates and scales pixels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..grids.regular import centred
from ..groups import Group
from ..testing.moving import coefficients as spline_coefficients
from ..testing.moving import continued
from ..testing.moving import moved as moved

EDGE = 6  # samples: 0.27⁶ < 1e-3


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
    coefficients, out = spline_coefficients(images), torch.zeros_like(images)
    for chosen in itertools.product(pairs, repeat=len(space)):
        weights, where = (torch.stack([one[k][..., i] for i, one in enumerate(chosen)], -1) for k in (0, 1))
        out += weights.prod(-1).unsqueeze(1) * sampled(coefficients, where)
    outside = (points.abs() > first + 0.5).any(-1).unsqueeze(1)
    return out.masked_fill(outside, 0)


def lattice_points(images: Tensor) -> Tensor:
    """The places of the samples of images (B, C, *space), counted from the centre: (samples, d)."""
    return centred(images.shape[2:], dtype=images.dtype, device=images.device).flatten(0, -2)


def rotations(angles: Tensor) -> Tensor:
    """The matrices f(A x) that rotate images counter-clockwise by these angles: (B, 2, 2)."""
    return torch.stack([angles.cos(), angles.sin(), -angles.sin(), angles.cos()], -1).view(-1, 2, 2)


def radii(space: Sequence[int]) -> Tensor:
    """The distance of each sample from the centre: (*space)."""
    return centred(space).norm(dim=-1)


def in_view(space: Sequence[int]) -> Tensor:
    """The largest ball in the image, less a tenth of its radius, which rotations leave in view: booleans (*space)."""
    return radii(space) <= 0.9 * (min(space) - 1) / 2


def in_disc(images: Tensor, magnified: float = 1.0) -> tuple[Tensor, Tensor]:
    """Images (B, C, *space) as a part that is zero outside a disc, and the colour to lay under it.

    The disc is the largest that stays in view however it is rotated, and magnified so many times; its edge is one
    sample wide. Transforming the part and laying the same colour under it transforms all that can be seen, and no more.
    """
    largest = (min(images.shape[2:]) - 1) / 2 / magnified
    disc = (largest + 0.5 - radii(images.shape[2:])).clamp(0, 1).to(images)
    colour = rim_colour(images, largest)
    return (images - colour) * disc, colour


def rim_colour(images: Tensor, largest: float | None = None) -> Tensor:
    """The mean colour of each image along the rim of its largest disc, two samples wide: (B, C, 1, …).

    What most likely surrounds an image that is rotated: black around black, tissue around tissue.
    """
    radius, largest = radii(images.shape[2:]), largest or (min(images.shape[2:]) - 1) / 2
    rim = ((radius <= largest) & (radius > largest - 2)).to(images)
    return (images * rim).sum(tuple(range(2, images.ndim)), keepdim=True) / rim.sum()


def magnification(group: Group, elements: Tensor) -> float:
    """How many times longer the elements (N, …) make a line at most."""
    return float(torch.linalg.matrix_norm(group.matrix(elements.double().cpu()), 2).max())


@dataclass(frozen=True)
class Scene:
    """Images with something around them, so that none of their copies shows a black corner: new to any network."""

    inside: Tensor
    """(B, C, …), as large as the images or larger; it is transformed, and zeros move in."""
    background: Tensor | float
    """What is added to each copy."""
    group: Group
    space: tuple[int, ...]

    @staticmethod
    def disc(images: Tensor, group: Group, elements: Tensor) -> Scene:
        """Images cut to the disc that all these elements leave in view, on the colour of its rim."""
        return Scene(*in_disc(images, max(1.0, magnification(group, elements))), group, tuple(images.shape[2:]))

    @staticmethod
    def mirrored(images: Tensor, group: Group) -> Scene:
        """Whole images to be rotated or reflected, with their own mirror images around them."""
        space = tuple(images.shape[2:])
        # Splines feel an edge for some samples more than the corners of the image reach beyond its sides.
        far = [math.ceil((math.hypot(*space) - n) / 2) + EDGE for n in space]
        around = [min(n - 1, more) for n, more in zip(space, far, strict=True)]
        margins = [margin for margin in reversed(around) for _ in (0, 1)]
        return Scene(torch.nn.functional.pad(images, margins, mode="reflect"), 0.0, group, space)

    def copy(self, element: Tensor, there_and_back: bool = False) -> Tensor:
        """The images f(h⁻¹x); or transformed by h and then by h⁻¹, which only interpolation tells from the images."""
        if not there_and_back:
            return moved(self.inside, self.group, element, self.space) + self.background
        there = moved(self.inside, self.group, element)
        return moved(there, self.group, element, self.space, back=True) + self.background

    def maps(self, network: Callable[[Tensor], Tensor], element: Tensor, there_and_back: bool = False) -> Tensor:
        """The network's maps for a copy, brought back to where they lie in the image: h⁻¹·f(h·x).

        Maps are brought back, not the masks that are made of them: they are smooth, and rotating a mask costs more than
        what is to be measured. `there_and_back`: h⁻¹·h·f(h⁻¹·h·x).
        """
        maps = network(self.copy(element, there_and_back)).float()
        if there_and_back:
            maps = moved(continued(maps), self.group, element, self.space)
        return moved(continued(maps), self.group, element, self.space, back=True)
