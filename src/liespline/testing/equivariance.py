"""How equivariant a network is: a measured number."""

from __future__ import annotations

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
    """Return ‖Φ(L_h f) − L_h Φ(f)‖ / ‖Φ(f)‖ at the centre of the image, over all `elements` h (default: the grid's).

    The inputs f are mixtures of Gaussians (standard deviation `blur` samples and up) evaluated at h⁻¹ ⊙ x, so they are
    transformed exactly and nothing is interpolated. The module maps images `(B, in_channels, size, …)` to feature maps
    `(B, C, N_h, *space)` on `grid`, or to `(B, C, *space)` or `(B, C)`, which should not change at all. Elements h′ for
    which h⁻¹h′ is not on the grid have nothing to be compared with and are left out, such as the ends of a scale grid.
    """
    group = grid.group
    like = next(module.parameters(), torch.zeros(()))
    generator = torch.Generator().manual_seed(seed)
    mixture = _Mixture(images, in_channels, group.space_dim, size, blur, generator)
    axis = torch.arange(size, dtype=torch.float64) - (size - 1) / 2
    points = torch.cartesian_prod(*[axis] * group.space_dim).reshape(*[size] * group.space_dim, group.space_dim)
    still = _centre(module(mixture(points).to(like)), group.space_dim)
    error = total = 0.0
    for h in grid.elements if elements is None else elements.to(torch.float64):
        turned = _centre(module(mixture(group.pull(h, points)).to(like)), group.space_dim)
        if turned.ndim == 2:
            expected, found = still, turned
        else:
            to, origin = _matches(grid, h)
            expected, found = still[:, :, origin], turned[:, :, to]
        error += float((found - expected).double().square().sum())
        total += float(expected.double().square().sum())
    if total == 0:
        raise ValueError(f"equivariance_error: nothing to compare; no product of these elements lies on {grid!r}")
    return (error / total) ** 0.5


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
