"""A U-Net for segmentation and other maps of images, volumes or signals, equivariant to any group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from .._check import sizes
from ..grids import Grid
from ..nn import Downsample, Upsample
from ..nn.norm import recomputed
from ..ops.layout import Order, fields_first, fields_last, order_of
from .kit import Kit, Layers, finished
from .pretrained import Pretrained, ready
from .widths import VERSION, build, checked


@ready
def unet(
    in_channels: int,
    out_channels: int,
    grid: Grid,
    *,
    widths: Sequence[int] = (16, 24, 32, 48),
    kernel_size: int | Sequence[int] = 5,
    factor: int | Sequence[int] = 2,
    kernel: str = "dense",
    n_k: int | Sequence[int] | None = None,
    separable: bool = False,
    field_dropout: float = 0.0,
    features: bool = False,
    activation: str | None = None,
    smooth: bool = False,
    norm: str = "batch",
    breaking: bool = False,
    parameters: int | None = None,
    checkpoint: bool = False,
    version: int = VERSION,
) -> Pretrained:
    """Two group correlations at every size, down by halves and up again, with skips between equal sizes.

    One size for each width. Down- and up-sampling share one centre, so that what the network draws moves with the image
    at every size. At the end come the maximum over the group and a 1-sample convolution; `features=True` leaves these
    out and returns the feature map `(B, widths[0], N_h, *space)`, for heads of your own such as `Project("vector", …)`.
    `kernel_size` and `factor`, of down- and up-sampling, are one number or one per axis: (3, 5, 5) and (1, 2, 2) for
    thick slices. `field_dropout` acts on whole fields; `separable` takes layers of `SeparableGConv`; `activation`,
    `norm`, `smooth=True` and `breaking=True` are as in `classifier`, but without a disc: corners are drawn too.
    `parameters` scales all widths to about that many numbers to learn, by multiples of eight where these come within
    3 %; `version=1` does without, as liespline 0.2 did. `checkpoint` computes every stage again in the backward pass
    instead of keeping what its layers made: less memory, for volumes, at a third more time.

    (B, in_channels, *space) -> (B, out_channels, *space), moved as the group moves the image.
    """
    widths = checked("unet", widths, least=1)

    def network(kit: Kit, widths: Sequence[int]) -> Pretrained:
        def pair(first: nn.Module, width: int) -> nn.Sequential:
            second = kit.conv(width, width)
            return nn.Sequential(first, kit.norm(width), second, kit.norm(width, field_dropout))

        down = [pair(kit.lift(in_channels, widths[0]), widths[0])]
        down += [nn.Sequential(Downsample(factor), pair(kit.conv(a, b), b)) for a, b in pairwise(widths)]
        up = [pair(kit.conv(fine + coarse, fine), fine) for fine, coarse in pairwise(widths)]
        head = [] if features else [kit.project(), kit.points(widths[0], out_channels)]
        return UNet(down, up[::-1], nn.Sequential(*head), Upsample(factor), checkpoint)

    if breaking and checkpoint:
        raise ValueError("unet: checkpoint = True with breaking = True: what is computed again would see no frame")
    window = kernel_size
    if not isinstance(window, int):
        window = sizes("unet", "kernel_size", window, grid.group.space_dim)
    layers = Layers(window, kernel, n_k, separable, False, activation, smooth, breaking, norm)
    return finished(build(network, widths, parameters, grid, layers, version), layers)


class UNet(Pretrained):
    """Stages that go down, stages that come up and take the skip of their own size along, and a head."""

    def __init__(
        self,
        down: list[nn.Sequential],
        up: list[nn.Sequential],
        head: nn.Module,
        finer: Upsample,
        checkpoint: bool = False,
    ) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        self.down, self.up, self.head = nn.ModuleList(down), nn.ModuleList(up), head
        self.finer = finer

    def forward(self, x: Tensor) -> Tensor:
        """Map images `(B, in_channels, *space)` to maps of the same size."""
        skips = []
        for stage in self.down:
            x = self._run(stage, x)
            skips.append(x)
        skips.pop()
        for stage in self.up:
            x = self._run(
                lambda skip, x, stage=stage: stage(_joined(skip, self.finer(x, skip.shape[3:]))), skips.pop(), x
            )
        return self.head(x)

    def _run(self, stage: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        return recomputed(stage, *tensors) if self.checkpoint and torch.is_grad_enabled() else stage(*tensors)


def _joined(*maps: Tensor) -> Tensor:
    """The channels of several maps in one, with channels innermost in memory if they are so in all of them."""
    if not all(order_of(x) is Order.FIELDS for x in maps):
        return torch.cat(maps, 1)
    return fields_first(torch.cat([fields_last(x) for x in maps], -1))
