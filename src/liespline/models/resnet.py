"""A residual network with pre-activation, for images, volumes or signals, equivariant to any group."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ..grids import Grid
from ..nn import Downsample
from ..nn.norm import recomputed
from .kit import Kit, Layers, finished
from .pretrained import Pretrained, ready
from .widths import build, checked, known, restrictions

WIDTHS = {1: (24, 24, 48, 48), 2: (8, 8, 16, 16, 32, 32, 64, 64)}
KERNELS = {1: "dense", 2: "local"}
"""The defaults of each version."""


@ready
def resnet(
    in_channels: int,
    classes: int,
    grid: Grid,
    *,
    widths: Sequence[int] | None = None,
    kernel_size: int = 5,
    kernel: str | None = None,
    n_k: int | Sequence[int] | None = None,
    separable: bool = False,
    dropout: float = 0.3,
    field_dropout: float = 0.0,
    disc: bool = False,
    features: bool = False,
    activation: str | None = None,
    smooth: bool = False,
    norm: str = "batch",
    project: str = "max",
    breaking: bool = False,
    restrict: Mapping[int, Grid] | None = None,
    parameters: int | None = None,
    checkpoint: bool = False,
    version: int = 1,
) -> Pretrained:
    """A residual block for each width: x + conv(relu(norm(conv(relu(norm(x)))))).

    The first layer lifts the image at its full size, which is halved once before the blocks; where the width changes a
    new stage begins, at half the size. The last window sees no border; then come the maximum over the group, the mean
    over space and two linear layers.
    `disc=True` lets all layers and the mean look at the largest disc alone, which turns onto itself: for tissue, and
    what else fills the image. `features=True` leaves the head out and returns the pyramid for heads of your own: a
    tuple of `(B, width, N_h, *space)`, one per stage, finest first. `field_dropout` acts in the blocks, `dropout`
    between the linear layers; `separable` takes layers of `SeparableGConv`; `activation`, `norm`, `project`,
    `smooth=True` and `breaking=True` are as in `classifier`. `restrict={2: grid}` goes on from stage 2, counted from 0,
    on the elements of a subgroup (`nn.Restrict`). `parameters` scales all widths to about that many numbers to learn;
    `checkpoint` computes stages again in the backward pass instead of keeping them, as in `unet`.

    `version=2` is ResNet-18's plan: the first layer halves the image about its centre, and there are four stages of
    local kernels, whose widths are multiples of eight where these come within 3 % of `parameters`. A step takes less
    time; on PCam patches its AUC is behind at equal parameters (`studies/pcam.py:RESNET`).

    (B, in_channels, *space) -> (B, classes), unchanged but for interpolation when the group moves the image.
    """
    widths = checked("resnet", WIDTHS[known(version)] if widths is None else widths, least=1)
    kernel = KERNELS[known(version)] if kernel is None else kernel

    def network(kit: Kit, candidate: Sequence[int]) -> Pretrained:
        stages: list[list[nn.Module]] = []
        left = restrictions("resnet", restrict, range(1 + sum(a != b for a, b in pairwise(widths))))
        # A stage begins where the widths asked for change: two of them may be scaled to the same.
        pairs = zip(pairwise((widths[0], *widths)), pairwise((candidate[0], *candidate)), strict=True)
        for (before, after), (inputs, outputs) in pairs:
            if not stages:
                stages.append([Downsample(2)] if version == 1 else [])
            elif before != after:
                stages.append([Downsample(2)])
            factor = 1
            if subgrid := left.pop(len(stages) - 1, None):
                stages[-1].append(restriction := kit.restrict(subgrid))
                factor = restriction.factor
            stages[-1].append(Residual(kit, factor * inputs, outputs, field_dropout))
        first = kit.lift if version == 1 else kit.halving
        stem = first(in_channels, candidate[0])
        last = candidate[-1]
        head = nn.Identity() if features else nn.Sequential(kit.norm(last), *kit.head(last, last, classes, dropout))
        norms = [kit.norm(width) for width in _ends(widths, candidate)] if features else []
        return ResNet(stem, [nn.Sequential(*stage) for stage in stages], norms, head, checkpoint)

    if breaking and checkpoint:
        raise ValueError("resnet: checkpoint = True with breaking = True: what is computed again would see no frame")

    layers = Layers(kernel_size, kernel, n_k, separable, disc or smooth, activation, smooth, breaking, norm, project)
    return finished(build(network, widths, parameters, grid, layers, version), layers)


def _ends(widths: Sequence[int], candidate: Sequence[int]) -> list[int]:
    """The width of each stage's last block."""
    last = [i for i, (a, b) in enumerate(pairwise(widths)) if a != b]
    return [candidate[i] for i in (*last, len(widths) - 1)]


class Residual(nn.Module):
    """x + conv(relu(norm(conv(relu(norm(x)))))); a 1-sample window brings x to a new width."""

    def __init__(self, kit: Kit, inputs: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.skip = nn.Identity() if inputs == outputs else kit.conv(inputs, outputs, size=1)
        first, second = kit.conv(inputs, outputs), kit.conv(outputs, outputs)
        self.branch = nn.Sequential(kit.norm(inputs), first, kit.norm(outputs, dropout), second)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the branch finds to the feature map."""
        return self.skip(x) + self.branch(x)


class ResNet(Pretrained):
    """A lifting layer, stages of residual blocks, and a head, or a norm for the output of every stage."""

    def __init__(
        self,
        stem: nn.Module,
        stages: list[nn.Sequential],
        norms: list[nn.Module],
        head: nn.Module,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        self.stem, self.stages, self.norms, self.head = stem, nn.ModuleList(stages), nn.ModuleList(norms), head

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Map images `(B, in_channels, *space)` to classes, or to the pyramid of feature maps."""
        x = self.stem(x)
        pyramid = []
        for stage in self.stages:
            x = recomputed(stage, x) if self.checkpoint and torch.is_grad_enabled() else stage(x)
            pyramid.append(x)
        if self.norms:
            return tuple(norm(feature) for norm, feature in zip(self.norms, pyramid, strict=True))
        return self.head(x)
