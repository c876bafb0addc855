"""The smooth random field of an elastic deformation."""

import torch
from torch import Tensor

from ...splines import bspline
from ..transforms import lattice_points, sampled

INTERVALS = 4
"""Intervals of the coarse lattice along each side of an image: of handwriting, about the length of a stroke."""
NODES = INTERVALS + 3
"""Cubic splines of the lattice that reach an image along one axis."""
SPREAD = 151 / 315
"""B⁷(0) = ∫ B³(t)² dt: the variance of a cubic spline along one axis, if its coefficients have variance 1."""


def displacement(coefficients: Tensor, points: Tensor, size: tuple[int, int]) -> Tensor:
    """The field u(x) = Σ_ij c_ij B³(x₀/s₀ − i) B³(x₁/s₁ − j) at points x, in samples from the centre: (B, P, 2).

    `coefficients` (B, NODES, NODES, 2), `points` (B or 1, P, 2); the spacing s is a quarter of an image of this size.
    """
    spacing = torch.tensor(size, dtype=points.dtype, device=points.device) / INTERVALS
    nodes = torch.arange(NODES, dtype=points.dtype, device=points.device) - (NODES - 1) / 2
    rows, columns = bspline((points / spacing).unsqueeze(-1) - nodes, 3).unbind(-2)  # (B or 1, P, NODES) each
    # One axis after the other: a small matrix product, then a sum over the splines of the other axis.
    along = (rows @ coefficients.flatten(2)).unflatten(-1, (NODES, 2))
    return (along * columns.unsqueeze(-1)).sum(-2)


def deformed(points: Tensor, images: Tensor, normal: Tensor, deviation: float) -> Tensor:
    """Points φ(x − δ), where φ(x) = x + u(x) has a field u of its own for each image: (B, P, 2), as `points` are.

    `normal` are NODES · NODES · 2 standard normal numbers (…, B); u has this deviation, in samples. δ puts the centre
    of mass of the images f (B, C, H, W) back: that of f(φ(x − δ)) is that of f. Digits may tell by it what was up.
    """
    size = (images.shape[-2], images.shape[-1])
    coefficients = (deviation / SPREAD) * normal.T.unflatten(-1, (NODES, NODES, 2))
    lattice = lattice_points(images)
    light = images.abs()
    there = sampled(light, (lattice + displacement(coefficients, lattice.unsqueeze(0), size)).unflatten(1, size))
    points = points - (_centre_of_mass(light, lattice) - _centre_of_mass(there, lattice))
    return points + displacement(coefficients, points, size)


def _centre_of_mass(light: Tensor, lattice: Tensor) -> Tensor:
    """Where the light of images is centred: (B, 1, 2)."""
    weights = light.sum(1).flatten(1)
    return (weights @ lattice / weights.sum(1, keepdim=True).clamp(min=1e-6)).unsqueeze(1)
