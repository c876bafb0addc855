"""A U-Net for segmentation and other maps of images, volumes or signals, equivariant to any group."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from .._check import Size, sizes
from ..grids import Grid
from ..nn import Downsample, Restrict, Upsample
from ..nn.norm import recomputed
from ..ops.layout import Order, fields_first, fields_last, order_of
from .kit import Kit, Layers, finished
from .pretrained import Pretrained, ready
from .widths import VERSION, build, checked, restrictions


@ready
def unet(
    in_channels: int,
    out_channels: int,
    grid: Grid,
    *,
    widths: Sequence[int] = (16, 24, 32, 48),
    kernel_size: int | Sequence[int | Sequence[int]] = 5,
    factor: int | Sequence[int | Sequence[int]] = 2,
    kernel: str = "dense",
    n_k: int | Sequence[int] | None = None,
    separable: bool = False,
    field_dropout: float = 0.0,
    features: bool = False,
    activation: str | None = None,
    smooth: bool = False,
    norm: str = "batch",
    breaking: bool = False,
    restrict: Mapping[int, Grid] | None = None,
    parameters: int | None = None,
    checkpoint: bool = False,
    deep_supervision: bool = False,
    version: int = VERSION,
) -> Pretrained:
    """Two group correlations at every size, down by halves and up again, with skips between equal sizes.

    One size for each width. Down- and up-sampling share one centre, so that what the network draws moves with the image
    at every size. At the end come the maximum over the group and a 1-sample convolution; `features=True` leaves these
    out and returns the feature map `(B, widths[0], N_h, *space)`, for heads of your own such as `Project("vector", …)`.
    `kernel_size` and `factor`, of down- and up-sampling, are one number or one per axis: (3, 5, 5) and (1, 2, 2) for
    thick slices; or a list of these, a window for each size and a factor for each step between sizes. `field_dropout`
    acts on whole fields; `separable` takes layers of `SeparableGConv`; `activation`, `norm`, `smooth=True` and
    `breaking=True` are as in `classifier`, but without a disc: corners are drawn too. `restrict={2: grid}` goes on from
    size 2, counted from 0, on the elements of a subgroup (`nn.Restrict`): small structures are found by all of the
    group, large ones and the way up by less; the output follows the subgroup. `parameters` scales all widths to
    about that many numbers to learn, by multiples of eight where these come within 3 %; `version=1` does without, as
    liespline 0.2 did. `checkpoint` computes every stage again in the backward pass instead of keeping what its layers
    made: less memory, for volumes, at a third more time. With `deep_supervision` there is a map of every size but the
    coarsest, a list with the finest first; `net.deep_supervision = False` leaves the finest alone.

    (B, in_channels, *space) -> (B, out_channels, *space), moved as the group moves the image.
    """
    widths = checked("unet", widths, least=1)
    d = grid.group.space_dim
    windows = _each("kernel_size", kernel_size, len(widths), "sizes", d)
    factors = _each("factor", factor, len(widths) - 1, "steps between sizes", d)
    if deep_supervision and len(widths) < 2:
        raise ValueError(f"unet: deep_supervision = True with widths = {widths}: needs two sizes or more")

    def network(kit: Kit, widths: Sequence[int]) -> Pretrained:
        def pair(first: nn.Module, width: int, window: int | Size) -> nn.Sequential:
            second = kit.conv(width, width, size=window)
            return nn.Sequential(first, kit.norm(width), second, kit.norm(width, field_dropout))

        left = restrictions("unet", restrict, range(1, len(widths)))
        down, grids = [pair(kit.lift(in_channels, widths[0]), widths[0], windows[0])], [kit.grid]
        for stage, (fine, coarse) in enumerate(pairwise(widths), 1):
            smaller: list[nn.Module] = [Downsample(factors[stage - 1])]
            if subgrid := left.pop(stage, None):
                smaller.append(restriction := kit.restrict(subgrid))
                fine *= restriction.factor
            first = kit.conv(fine, coarse, size=windows[stage])
            down.append(nn.Sequential(*smaller, pair(first, coarse, windows[stage])))
            grids.append(kit.grid)
        up: list[nn.Sequential] = []
        skips: list[nn.Module] = []
        for (fine, coarse), own, window in zip(pairwise(widths), grids, windows, strict=False):
            # What comes up is a function on the last of the subgroups, and what it meets has to be one too.
            skips.append(Restrict(own, kit.grid) if len(own) > len(kit.grid) else nn.Identity())
            first = kit.conv(len(own) // len(kit.grid) * fine + coarse, fine, size=window)
            up.append(pair(first, fine, window))
        heads = [
            nn.Sequential() if features else nn.Sequential(kit.project(width)[0], kit.points(width, out_channels))
            for width in (widths[:-1] if deep_supervision else widths[:1])
        ]
        finer = [Upsample(step) for step in factors]
        return UNet(down, skips[::-1], up[::-1], heads, finer[::-1], checkpoint, deep_supervision)

    if breaking and checkpoint:
        raise ValueError("unet: checkpoint = True with breaking = True: what is computed again would see no frame")
    layers = Layers(windows[0], kernel, n_k, separable, False, activation, smooth, breaking, norm)
    return finished(build(network, widths, parameters, grid, layers, version), layers)


def _each(name: str, value: int | Sequence[int | Sequence[int]], count: int, of: str, d: int) -> list[int | Size]:
    """A window or factor for each of so many sizes: one for all of them, or a list of their own."""
    if isinstance(value, int):
        return [value] * count
    own = any(not isinstance(one, int) for one in value)
    if own and len(value) != count:
        raise ValueError(
            f"unet: {name} = {value!r} has {len(value)} entries, must have {count}, one for each of the {of}"
        )
    return [sizes("unet", name, one, d) for one in (value if own else [value] * count)]  # type: ignore[arg-type]


class UNet(Pretrained):
    """Stages that go down, stages that come up and take the skip of their own size along, and heads."""

    def __init__(
        self,
        down: list[nn.Sequential],
        skips: list[nn.Module],
        up: list[nn.Sequential],
        heads: list[nn.Sequential],
        finer: list[Upsample],
        checkpoint: bool = False,
        deep_supervision: bool = False,
    ) -> None:
        super().__init__()
        self.checkpoint, self.deep_supervision = checkpoint, deep_supervision
        self.down, self.up, self.finer = nn.ModuleList(down), nn.ModuleList(up), nn.ModuleList(finer)
        self.skips = nn.ModuleList(skips)
        if deep_supervision:
            self.seg_layers = nn.ModuleList(heads)  # nnU-Net's name: these it leaves out of pretrained parameters
        else:
            self.head = heads[0]

    def forward(self, x: Tensor) -> Tensor | list[Tensor]:
        """Map images `(B, in_channels, *space)` to maps of the same size, or to a list of maps, the finest first."""
        skips = []
        for stage in self.down:
            x = self._run(stage, x)
            skips.append(x)
        skips.pop()
        maps = [x]
        for stage, skip, finer in zip(self.up, self.skips, self.finer, strict=True):
            x = self._run(
                lambda skip, x, stage=stage, finer=finer: stage(_joined(skip, finer(x, skip.shape[3:]))),
                skip(skips.pop()),
                x,
            )
            maps.insert(0, x)
        if self.deep_supervision:
            return [head(x) for head, x in zip(self.seg_layers, maps[: len(self.seg_layers)], strict=True)]
        return self.seg_layers[0](x) if hasattr(self, "seg_layers") else self.head(x)

    def _run(self, stage: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        return recomputed(stage, *tensors) if self.checkpoint and torch.is_grad_enabled() else stage(*tensors)


def _joined(*maps: Tensor) -> Tensor:
    """The channels of several maps in one, with channels innermost in memory if they are so in all of them."""
    if not all(order_of(x) is Order.FIELDS for x in maps):
        return torch.cat(maps, 1)
    return fields_first(torch.cat([fields_last(x) for x in maps], -1))
