"""A general classifier for images, volumes or signals, equivariant to any group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from ..grids import Grid
from ..nn import Downsample, GConv, Lift, NormReLU, Project
from .kernels import guarded, h_basis


def classifier(
    in_channels: int,
    classes: int,
    grid: Grid,
    *,
    widths: Sequence[int] = (8, 12, 16, 24),
    kernel_size: int = 5,
    kernel: str = "dense",
    n_k: int | None = None,
    stride: int = 1,
    weights: int | None = None,
) -> nn.Sequential:
    """A lifting layer, group convolutions with halvings between them, an average over the group and space.

    The layers pad, except the last, whose outputs see whole windows; the size is halved, with smoothing, after
    all but the last two; `stride` thins the image out in the lifting layer already, for large ones. A grid of one
    element gives the ordinary CNN of the same plan; `weights` scales all widths together so that networks of
    different groups come out about equally large.

    (B, in_channels, *space) -> (B, classes), unchanged but for interpolation when the group moves the image.
    Raises ValueError for an unknown kernel or for fewer than two widths.
    """
    if len(widths) < 2 or min(widths) < 1:
        raise ValueError(f"classifier: widths = {tuple(widths)}; needs two or more whole numbers ≥ 1")
    if weights is not None:
        per_kernel = (_centres(kernel_size, grid), len(h_basis(grid, kernel, n_k)))
        widths = _scaled(in_channels, classes, widths, per_kernel, weights)
    d = grid.group.space_dim
    border = "same" if stride == 1 else kernel_size // 2
    layers: list[nn.Module] = [Centre(first=2)] if stride > 1 else []
    layers.append(Lift(in_channels, widths[0], kernel_size, grid, stride=stride, padding=border, bias=False))
    for i, (before, width) in enumerate(pairwise(widths), 1):
        last = i == len(widths) - 1
        layers.append(NormReLU(before))
        if not last:
            layers += [Centre(first=3), Downsample(2)]
        padding = 0 if last else "same"
        basis = h_basis(grid, kernel, n_k)  # one each: a layer learns the centres of its own deformable kernels
        layers.append(GConv(before, width, kernel_size, grid, h_basis=basis, padding=padding, bias=False))
    average = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)[d - 1](1)
    head = [NormReLU(widths[-1]), Project("mean", grid), average, nn.Flatten()]
    return guarded(nn.Sequential(*layers, *head, nn.Linear(widths[-1], classes)))


class Centre(nn.Module):
    """Bring each even space axis to the points between its samples, so that every second sample is centred.

    Samples 0, 2, 4, … of an even axis lie half a sample off its centre, and those of a turned image off to another
    side: a network that keeps them is not equivariant. `first` is the first space axis: 2 in images, 3 in feature maps.
    """

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        """Average neighbours along the even axes."""
        for axis in range(self.first, x.ndim):
            size = x.shape[axis]
            if size % 2 == 0:
                x = (x.narrow(axis, 0, size - 1) + x.narrow(axis, 1, size - 1)) / 2
        return x


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
