"""A general classifier for images, volumes or signals, equivariant to any group: a chain of group correlations."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from torch import nn

from .._check import sizes
from ..grids import Grid
from ..nn import Centre, Downsample
from .kit import Kit, Layers, finished
from .pretrained import Chain, Pretrained, ready
from .widths import VERSION, build, checked, restrictions


@ready
def classifier(
    in_channels: int,
    classes: int,
    grid: Grid,
    *,
    widths: Sequence[int] = (24, 32, 36, 36, 48, 64),
    kernel_size: int | Sequence[int] = 5,
    kernel: str = "dense",
    n_k: int | Sequence[int] | None = None,
    separable: bool = False,
    stride: int = 1,
    dropout: float = 0.3,
    field_dropout: float = 0.0,
    disc: bool = False,
    activation: str | None = None,
    smooth: bool = False,
    norm: str = "batch",
    project: str = "max",
    breaking: bool = False,
    restrict: Mapping[int, Grid] | None = None,
    parameters: int | None = None,
    version: int = VERSION,
) -> Pretrained:
    """A lifting layer, group correlations with halvings between them, the maximum over the group, a mean over space.

    The size is halved, with smoothing, after every second layer; all layers pad but the last, whose windows see whole
    surroundings. `stride` thins the image out in the lifting layer already, for large ones. `dropout` acts between
    the two linear layers at the end, `field_dropout` on whole fields after every norm; `separable` takes layers of
    `SeparableGConv`; `disc=True` lets all layers and the mean look at the largest disc alone, which turns onto itself:
    for tissue, and what else fills the image. `activation` is "relu", "silu" or "gelu"; `norm` is
    "batch" or, for small batches, "instance" or "layer"; `smooth=True` makes the scores
    steadier between the angles of the grid: a disc, SiLU, activations on twice as many orientations (`nn.Oversampled`)
    and an interpolated maximum. `breaking=True` puts an `nn.FrameBias` behind every layer, so that the network uses the
    image's own orientation as far as that helps; `net(x, frame=g)` takes another frame with the image.
    `restrict={4: grid}` goes on from layer 4, counted from 0, on the elements of a subgroup (`nn.Restrict`).
    `project="bispectrum"` keeps all but the orientation of each feature at the end (`nn.Project`). A grid of one
    element gives the ordinary CNN of the same plan; `parameters` scales all widths together to about that many
    numbers to learn, so that networks of different groups come out equally large, by widths in multiples of eight
    where these come within 3 %; `version=1` does without, as liespline 0.2 did.

    (B, in_channels, *space) -> (B, classes), unchanged but for interpolation when the group moves the image.
    Raises ValueError for an unknown kernel or for fewer than two widths.
    """
    widths = checked("classifier", widths, least=2)

    def network(kit: Kit, widths: Sequence[int]) -> list[nn.Module]:
        layers: list[nn.Module] = [Centre(stride, disc=(disc or smooth) and version > 1)] if stride > 1 else []
        layers.append(kit.lift(in_channels, widths[0], stride=stride))
        left, factor = restrictions("classifier", restrict, range(1, len(widths))), 1
        for i, (before, width) in enumerate(pairwise(widths), 1):
            layers.append(kit.norm(before, field_dropout))
            if i % 2 == 0:
                layers.append(Downsample(2))
            if subgrid := left.pop(i, None):
                layers.append(restriction := kit.restrict(subgrid))
                factor = restriction.factor
            if i < len(widths) - 1:
                layers.append(kit.conv(factor * before, width))
                factor = 1
        return [*layers, *kit.head(factor * widths[-2], widths[-1], classes, dropout)]

    window = sizes("classifier", "kernel_size", kernel_size, grid.group.space_dim)
    layers = Layers(window, kernel, n_k, separable, disc or smooth, activation, smooth, breaking, norm, project)
    return finished(Chain(*build(network, widths, parameters, grid, layers, version)), layers)
