"""A general classifier for images, volumes or signals, equivariant to any group: a chain of group correlations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from ..grids import Grid
from ..nn import Downsample
from .kernels import guarded
from .kit import Kit, build, checked


def classifier(
    in_channels: int,
    classes: int,
    grid: Grid,
    *,
    widths: Sequence[int] = (24, 32, 36, 36, 64, 96),
    kernel_size: int = 5,
    kernel: str = "dense",
    n_k: int | None = None,
    stride: int = 1,
    dropout: float = 0.3,
    field_dropout: float = 0.0,
    parameters: int | None = None,
) -> nn.Sequential:
    """A lifting layer, group correlations with halvings between them, the maximum over the group, a mean over space.

    The size is halved, with smoothing, after every second layer; all layers pad but the last, whose windows see whole
    surroundings. `stride` thins the image out in the lifting layer already, for large ones. `dropout` acts between
    the two linear layers at the end, `field_dropout` on whole fields after every norm. A grid of one element gives the
    ordinary CNN of the same plan; `parameters` scales all widths together to about that many numbers to learn, so that
    networks of different groups come out equally large.

    (B, in_channels, *space) -> (B, classes), unchanged but for interpolation when the group moves the image.
    Raises ValueError for an unknown kernel or for fewer than two widths.
    """
    widths = checked("classifier", widths, least=2)

    def network(kit: Kit, widths: Sequence[int]) -> list[nn.Module]:
        layers: list[nn.Module] = [Centre(stride)] if stride > 1 else []
        layers.append(kit.lift(in_channels, widths[0], stride=stride))
        for i, (before, width) in enumerate(pairwise(widths), 1):
            layers.append(kit.norm(before, field_dropout))
            if i % 2 == 0:
                layers.append(Downsample(2))
            if i < len(widths) - 1:
                layers.append(kit.conv(before, width))
        return [*layers, *kit.head(widths[-2], widths[-1], classes, dropout)]

    return guarded(nn.Sequential(*build(network, widths, parameters, grid, kernel_size, kernel, n_k)))


class Centre(nn.Module):
    """Bring images to sizes that a stride divides evenly about their centre: (size − 1) a multiple of it.

    Samples 0, 2, 4, … of an even axis lie half a sample off its centre, and those of a turned image off to another
    side: a network that keeps them is not equivariant. Such an axis is read at the points between its samples first.
    """

    def __init__(self, stride: int) -> None:
        super().__init__()
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        """Average neighbours along an axis of `(B, C, *space)` that has one sample too many, crop two on both sides."""
        for axis in range(2, x.ndim):
            extra = (x.shape[axis] - 1) % self.stride
            if extra % 2:
                size = x.shape[axis] - 1
                x = (x.narrow(axis, 0, size) + x.narrow(axis, 1, size)) / 2
            if extra > 1:
                x = x.narrow(axis, extra // 2, x.shape[axis] - 2 * (extra // 2))
        return x
