"""A general classifier for images, volumes or signals, equivariant to any group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from ..grids import Grid, local, repulsion, uniform
from ..groups import SO2, SO3, Scale, Trivial
from ..nn import BatchNorm, Downsample, GConv, Lift, Project
from ..splines import SplineBasis

KERNELS = ("dense", "local", "atrous", "deformable")


def classifier(
    in_channels: int,
    classes: int,
    grid: Grid,
    *,
    widths: Sequence[int] = (8, 12, 16, 24),
    kernel_size: int = 5,
    kernel: str = "dense",
    n_k: int | None = None,
    weights: int | None = None,
) -> nn.Sequential:
    """A lifting layer, group convolutions with halvings between them, an average over the group and space.

    The layers pad, except the last, whose outputs see whole windows; the size is halved, with smoothing,
    after all but the last two. A grid of one element gives the ordinary CNN of the same plan; `weights`
    scales all widths together so that networks of different groups come out about equally large.

    (B, in_channels, *space) -> (B, classes), unchanged but for interpolation when the group moves the image.
    Raises ValueError for an unknown kernel or for fewer than two widths.
    """
    if kernel not in KERNELS:
        raise ValueError(f"classifier: kernel = {kernel!r}; choose one of {', '.join(KERNELS)}")
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(f"classifier: widths = {tuple(widths)}; needs two or more whole numbers ≥ 1")
    if weights is not None:
        per_kernel = (_centres(kernel_size, grid), len(h_basis(grid, kernel, n_k)))
        widths = _scaled(in_channels, classes, widths, per_kernel, weights)
    d = grid.group.space_dim
    layers: list[nn.Module] = [Lift(in_channels, widths[0], kernel_size, grid, padding="same", bias=False)]
    for i, (before, width) in enumerate(pairwise(widths), 1):
        last = i == len(widths) - 1
        layers += [BatchNorm(before), nn.ReLU()]
        if not last:
            layers.append(Halve())
        padding = 0 if last else "same"
        basis = h_basis(grid, kernel, n_k)  # one each: a layer learns the centres of its own deformable kernels
        layers.append(GConv(before, width, kernel_size, grid, h_basis=basis, padding=padding, bias=False))
    average = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)[d - 1](1)
    head = [BatchNorm(widths[-1]), nn.ReLU(), Project("mean", grid), average, nn.Flatten()]
    return nn.Sequential(*layers, *head, nn.Linear(widths[-1], classes))


class Halve(nn.Module):
    """Every second sample of each space axis after smoothing, about the centre of even and odd sizes alike.

    (B, C, N_h, *space) -> (B, C, N_h, *half). An even axis is first brought to the points between its samples:
    keeping samples 0, 2, 4, … of it would shift the image by half a sample, and a turned one elsewhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self.down = Downsample(2)

    def forward(self, x: Tensor) -> Tensor:
        """Halve the space axes."""
        for axis in range(3, x.ndim):
            size = x.shape[axis]
            if size % 2 == 0:
                x = (x.narrow(axis, 0, size - 1) + x.narrow(axis, 1, size - 1)) / 2
        halved: Tensor = self.down(x)
        return halved


def h_basis(grid: Grid, kernel: str, n_k: int | None = None) -> SplineBasis:
    """The splines on H of a kind of kernel, `n_k` of them (by default one an element; three for local ones).

    dense: spread over the group, as wide as they lie apart; local: next to the identity; atrous: spread over
    the group, as narrow as the grid is fine; deformable: local ones whose centres are learned.
    """
    group = grid.group
    if isinstance(group, Trivial) or len(grid) == 1:
        return SplineBasis(grid)
    if kernel in ("local", "deformable"):
        neighbours = 2 * group.dim + 1  # the identity and its nearest neighbours both ways
        return SplineBasis(local(group, n_k or neighbours, grid.spacing), trainable=kernel == "deformable")
    scale = grid.spacing if kernel == "atrous" else None
    if n_k is None or n_k == len(grid):
        return SplineBasis(grid, scale=scale)
    if isinstance(group, SO2):
        return SplineBasis(uniform(group, n_k), scale=scale)
    if isinstance(group, SO3):
        return SplineBasis(uniform(group, n_k) if n_k in (12, 24, 60) else repulsion(group, n_k), scale=scale)
    if isinstance(group, Scale):
        step = grid.spacing * len(grid) / n_k
        return SplineBasis(uniform(group, n_k, spacing=step), scale=scale)
    raise ValueError(f"classifier: n_k = {n_k} {kernel} splines on {group!r}; use kernel='local', or leave n_k out")


def _centres(kernel_size: int, grid: Grid) -> int:
    """How many spatial splines a layer has by default."""
    return Lift(1, 1, kernel_size, grid).weight.shape[-1]


def _scaled(
    in_channels: int, classes: int, widths: Sequence[int], per_kernel: tuple[int, int], weights: int
) -> list[int]:
    """The widths times one factor, chosen so that the network has as nearly as possible `weights` weights."""
    n_x, n_k = per_kernel

    def count(candidate: Sequence[int]) -> int:
        kernels = in_channels * candidate[0] * n_x + sum(a * b * n_x * n_k for a, b in pairwise(candidate))
        return kernels + 2 * sum(candidate) + (candidate[-1] + 1) * classes

    def scaled(factor: float) -> list[int]:
        return [max(1, round(factor * width)) for width in widths]

    # The count grows about as the square of the factor: try finely around where that puts it.
    guess = math.sqrt(weights / count(widths))
    factors = [guess * 2 ** (i / 64) for i in range(-128, 129)]
    return min((scaled(factor) for factor in factors), key=lambda candidate: abs(count(candidate) - weights))
