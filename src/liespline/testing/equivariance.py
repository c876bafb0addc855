"""How equivariant a network is: a measured number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..grids import Grid


@torch.no_grad()
def equivariance_error(
    module: nn.Module,
    grid: Grid,
    *,
    size: int,
    in_channels: int = 1,
    elements: Tensor | None = None,
    images: int = 8,
    blur: float = 2.0,
    seed: int = 0,
) -> float:
    """Return ‖Φ(L_h f) − L_h Φ(f)‖ / ‖Φ(f)‖ at the centre of the image, over all `elements` h.

    By default these are the grid's own and those half-way between neighbours: a network can be exact on its grid and
    poor in between. The inputs f are mixtures of Gaussians (standard deviation `blur` samples and up) evaluated at
    h⁻¹ ⊙ x, so they are transformed exactly and nothing is interpolated. The module, which is measured in eval mode and
    left as it was, maps images `(B, in_channels, size, …)` to feature maps `(B, C, N_h, *space)` on `grid`, or to
    `(B, C, *space)` or `(B, C)`, which should not change at all. A feature map is compared where h⁻¹h′ is on the grid;
    for an h between the elements of a grid that is closed, such as rotations, by its mean over H; else, as at the ends
    of a scale grid, it is left out.
    """
    errors = _errors(module, grid, size, in_channels, elements, images, blur, seed)
    error, total = sum(e for _, e, _ in errors), sum(t for _, _, t in errors)
    if total == 0:
        raise ValueError(f"equivariance_error: nothing to compare; no product of these elements lies on {grid!r}")
    return (error / total) ** 0.5


def assert_equivariant(module: nn.Module, grid: Grid, *, size: int, tolerance: float = 0.1, **options: Any) -> None:
    """Raise AssertionError if `equivariance_error` is above the tolerance; the options are those it takes.

    The message says how large the error is and for which element it is largest. Fresh networks of 8 or 16 orientations
    have 0.02 to 0.07, plain ones 0.3 to 0.8; a slip that hardly shows in a fresh network needs a tolerance of its own.
    """
    found = equivariance_error(module, grid, size=size, **options)
    if not found <= tolerance:  # NaN is no equivariance
        defaults = {"in_channels": 1, "elements": None, "images": 8, "blur": 2.0, "seed": 0}
        errors = _errors(module, grid, size, **(defaults | options))
        h, error, total = max(errors, key=lambda one: math.inf if one[1] != one[1] else one[1] / max(one[2], 1e-300))
        raise AssertionError(
            f"the output is not equivariant: relative error {found:.2g}, above the tolerance {tolerance:g}; "
            f"largest at h = {h.tolist()}: {(error / max(total, 1e-300)) ** 0.5:.2g}"
        )


@torch.no_grad()
def _errors(
    module: nn.Module,
    grid: Grid,
    size: int,
    in_channels: int,
    elements: Tensor | None,
    images: int,
    blur: float,
    seed: int,
) -> list[tuple[Tensor, float, float]]:
    """Return each element with the squares of the difference and of what it is compared with."""
    group = grid.group
    like = next(module.parameters(), torch.zeros(()))
    mixture = _Mixture(images, in_channels, group.space_dim, size, blur, torch.Generator().manual_seed(seed))
    axis = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    points = torch.cartesian_prod(*[axis] * group.space_dim).reshape(*[size] * group.space_dim, group.space_dim)
    closed = all(len(_matches(grid, h)[0]) == len(grid) for h in grid.elements)
    mean = (grid.weights / grid.weights.sum()).to(like)
    found = []
    with _evaluating(module):
        still = _centre(module(mixture(points).to(like)), group.space_dim)
        for h in torch.cat([grid.elements, between(grid)]) if elements is None else elements.to(torch.float64):
            turned = _centre(module(mixture(group.pull(h, points)).to(like)), group.space_dim)
            right = still
            if turned.ndim == 3:
                to, origin = _matches(grid, h)
                if len(to) == 0 and closed:
                    right, turned = still @ mean, turned @ mean
                else:
                    right, turned = still[:, :, origin], turned[:, :, to]
            found.append((h, float((turned - right).double().square().sum()), float(right.double().square().sum())))
    return found


def between(grid: Grid) -> Tensor:
    """Return the elements half-way from each element of a grid to its nearest neighbour, none for a single element."""
    if len(grid) == 1:
        return grid.elements[:0]
    group = grid.group
    steps = group.offset(grid.elements.unsqueeze(1), grid.elements)  # (N, N, dim)
    distance = steps.norm(dim=-1)
    nearest = distance.fill_diagonal_(math.inf).argmin(1)
    half = steps[torch.arange(len(grid)), nearest] / 2
    return group.product(grid.elements, group.exp(half))


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Put a network in eval mode, and every part of it back into its own mode."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _matches(grid: Grid, h: Tensor) -> tuple[Tensor, Tensor]:
    """Return the index pairs (i, j) with h⁻¹ h_i = h_j."""
    group = grid.group
    moved = group.relative(h, grid.elements)
    distance = group.offset(moved.unsqueeze(1), grid.elements).norm(dim=-1)  # (N, N)
    pairs = (distance < 1e-6 * min(grid.steps, default=1.0)).nonzero()
    return pairs[:, 0], pairs[:, 1]


def _centre(out: Tensor, d: int) -> Tensor:
    """Return the sample at the centre of space, (B, C) or (B, C, N_h)."""
    space = out.shape[out.ndim - d :] if out.ndim >= 2 + d else ()
    if any(n % 2 == 0 for n in space):
        raise ValueError(
            f"equivariance_error: the output has shape {tuple(out.shape)}, whose even space axes have no central "
            "sample; choose `size` so that they come out odd"
        )
    for n in reversed(space):
        out = out.select(-1, n // 2)
    return out


class _Mixture:
    """Images that are known at every point: sums of anisotropic Gaussians with random signs."""

    def __init__(self, images: int, channels: int, d: int, size: int, blur: float, generator: torch.Generator) -> None:
        shape = (images, channels, 12)
        self.means = size / 4 * torch.randn(*shape, d, dtype=torch.float64, generator=generator)
        self.heights = torch.randn(shape, dtype=torch.float64, generator=generator)
        self.widths = blur * (1 + torch.rand(shape, dtype=torch.float64, generator=generator))

    def __call__(self, points: Tensor) -> Tensor:
        flat = points.reshape(-1, points.shape[-1])
        square = (flat - self.means.unsqueeze(-2)).square().sum(-1)  # (B, C, blobs, points)
        values = (self.heights.unsqueeze(-1) * (-square / (2 * self.widths.unsqueeze(-1).square())).exp()).sum(2)
        return values.reshape(*values.shape[:2], *points.shape[:-1])
