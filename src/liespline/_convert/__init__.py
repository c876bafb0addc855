"""An ordinary convolutional network made equivariant, layer by layer."""

import copy
from collections.abc import Callable, Sequence

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd
from torch.nn.modules.instancenorm import _InstanceNorm

from ..grids import Grid
from ..nn import (
    BatchNorm,
    ChannelNorm,
    Depthwise,
    Downsample,
    FieldDropout,
    GConv,
    GroupNorm,
    InstanceNorm,
    Lift,
    MaxPool,
    Project,
    Upsample,
)  # fmt: skip
from .behaviour import WholeWindows, over_channels, pools_all, shown, treats_all_alike

_CONV = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_MAX = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
_MEAN = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_TO_ONE = (
    nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d,
    nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d,
)  # fmt: skip
_FIELDS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
# Layers that treat features on the group like any others, and layers that come after the projection.
_KEPT = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus, nn.Sigmoid,
    nn.Tanh, nn.Hardswish, nn.Hardsigmoid, nn.Identity, nn.Dropout, nn.Linear, nn.Flatten, nn.Softmax,
    nn.LogSoftmax, nn.PReLU,
)  # fmt: skip


class _Cannot(Exception):
    """A layer without an equivariant counterpart, and why."""


def convert(module: nn.Module, grid: Grid) -> nn.Module:
    """Return a network like `module` that is equivariant to the group of `grid`, with new weights; `module` stays.

    The first convolution becomes `Lift`, the others `GConv`, transposed ones `Upsample` and `GConv`; 3-wide windows
    become 5 wide, where turned kernels fit, with as many weights for each pair of elements. Strides and pooling keep
    their sizes but are taken about the image's centre, by `Downsample`; what pooling leaves out, it leaves out on both
    sides alike. Norms and dropout act on whole fields. The pooling of all positions to one takes the maximum over the
    group first; a network without one gets it at its end. Your own `forward` functions stay, and so do layers of your
    own that have no weights and treat every number alike, such as activations or dropped paths.

    Raises ValueError with a list of all layers that have no counterpart.
    """
    if not isinstance(module, nn.Module) or not isinstance(grid, Grid):
        found = f"{type(module).__name__} and {type(grid).__name__}"
        raise ValueError(f"convert: got {found}; needs an nn.Module and a Grid such as uniform(SO2(), 8)")
    make = _Converter(grid)
    new: dict[int, nn.Module] = {}
    problems = []
    inside: set[int] = set()
    for name, layer in module.named_modules():
        if id(layer) in inside:
            continue
        try:
            changed = make(layer)
        except _Cannot as why:
            problems.append(f"{name or 'the module itself'}: {shown(layer)} {why}")
            continue
        if changed is not None:
            new[id(layer)] = changed
            inside.update(map(id, layer.modules()))
    if not make.lifted and not problems:
        problems.append(f"it has no {_CONV[make.d - 1].__name__}, which would see the image first")
    if problems:
        raise ValueError("convert: these layers have no equivariant counterpart:\n  " + "\n  ".join(problems))
    # deepcopy looks copies up in its memo: every use of a layer becomes its counterpart.
    net = copy.deepcopy(module, new)
    return net if make.projected else nn.Sequential(net, Project("max", grid))


class _Converter:
    """Counterparts of layers, one after the other; None for a layer that stays as it is."""

    def __init__(self, grid: Grid) -> None:
        self.grid, self.d = grid, grid.group.space_dim
        self.lifted = self.projected = False

    def __call__(self, layer: nn.Module) -> nn.Module | None:
        rules: list[tuple[type | tuple[type, ...], Callable[..., nn.Module | None]]] = [
            (_CONV, self._conv), (_TRANSPOSED, self._transposed), (_BatchNorm, self._norm),
            (_InstanceNorm, self._instance_norm), (nn.GroupNorm, self._group_norm), (nn.LayerNorm, self._layer_norm),
            (_MAX, self._max), (_MEAN, self._mean), (_TO_ONE, self._to_one),
            (_FIELDS, lambda layer: FieldDropout(layer.p)), (nn.Upsample, self._up), (_KEPT, lambda layer: None),
        ]  # fmt: skip
        own = next(layer.parameters(recurse=False), None) is not None
        if next(layer.children(), None) is not None and not isinstance(layer, _BatchNorm):
            if own:
                raise _Cannot("has weights beside those of its layers: put them into a layer")
            return None  # its layers come next
        for kinds, rule in rules:
            if isinstance(layer, kinds):
                return rule(layer)
        if not own and treats_all_alike(layer, len(self.grid), self.d):
            return None
        if not own and pools_all(layer, self.d):
            return self._behind_projection(layer)
        raise _Cannot("is unknown")

    def _conv(self, layer: _ConvNd) -> nn.Module:
        self._dimension(len(layer.kernel_size))
        if type(layer).forward not in [kind.forward for kind in _CONV]:
            raise _Cannot("is a convolution with a forward of its own")
        if any(step != 1 for step in layer.dilation):
            raise _Cannot("is dilated: give a GConv an x_basis with centres further apart")
        per_channel = layer.groups == layer.in_channels == layer.out_channels and self.lifted
        factor = _one("stride", layer.stride)
        size = tuple(5 if k == 3 else k for k in layer.kernel_size)
        padding: str | tuple[int, ...] = "same"
        if not isinstance(layer.padding, str):
            padding = tuple(p + (n - k) // 2 for p, n, k in zip(layer.padding, size, layer.kernel_size, strict=True))
        elif layer.padding == "valid":
            padding = tuple((new - k) // 2 for new, k in zip(size, layer.kernel_size, strict=True))
        options = {"padding": padding, "padding_mode": layer.padding_mode, "bias": layer.bias is not None}
        kind, self.lifted = GConv if self.lifted else Lift, True
        conv: nn.Module = (
            Depthwise(layer.out_channels, size, self.grid, **options)  # type: ignore[arg-type]
            if per_channel
            else kind(layer.in_channels, layer.out_channels, size, self.grid, groups=layer.groups, **options)  # type: ignore[arg-type]
        )
        if factor == 1:
            return conv
        points = kind is GConv and set(size) == {1} and padding in ("same", (0,) * self.d)
        # A window of one sample commutes with down-sampling: fewer samples first.
        return nn.Sequential(Downsample(factor), conv) if points else nn.Sequential(conv, Downsample(factor))

    def _transposed(self, layer: _ConvTransposeNd) -> nn.Module:
        """Up-sampling about the centre and a convolution, or the other way round where its windows do not overlap."""
        self._dimension(len(layer.kernel_size))
        if type(layer).forward not in [kind.forward for kind in _TRANSPOSED]:
            raise _Cannot("is a convolution with a forward of its own")
        if not self._on_group:
            raise _Cannot("comes before the first convolution or behind the pooling to one position")
        if any(step != 1 for step in layer.dilation):
            raise _Cannot("is dilated: leave that out")
        factor = _one("stride", layer.stride)
        sides = zip(layer.kernel_size, layer.output_padding, map(int, layer.padding), strict=True)
        if {side + more - 2 * padding for side, more, padding in sides} != {factor}:
            raise _Cannot(
                f"does not make sizes {factor} times as large: kernel_size + output_padding - 2 padding must be its "
                "stride"
            )
        apart = set(layer.kernel_size) == {factor}
        size = tuple(1 if apart else 5 if side in (3, 4) else side + 1 - side % 2 for side in layer.kernel_size)
        options = {"groups": layer.groups, "bias": layer.bias is not None, "padding": "same"}
        conv = GConv(layer.in_channels, layer.out_channels, size, self.grid, **options)  # type: ignore[arg-type]
        if factor == 1:
            return conv
        # A window of one sample commutes with up-sampling: fewer samples first.
        return nn.Sequential(conv, Upsample(factor)) if apart else nn.Sequential(Upsample(factor), conv)

    def _norm(self, layer: _BatchNorm) -> nn.Module | None:
        if isinstance(layer, nn.SyncBatchNorm):  # takes any number of axes
            return None
        norm = BatchNorm(
            layer.num_features, layer.eps, layer.momentum, layer.affine, layer.track_running_stats,
            grid=self.grid if self._on_group else None,
        )  # fmt: skip
        # A norm that has layers itself, as timm's with an activation, calls them on what it has normalised.
        after = [self(child) or copy.deepcopy(child) for child in layer.children()]
        return nn.Sequential(norm, *after) if after else norm

    def _instance_norm(self, layer: _InstanceNorm) -> nn.Module | None:
        if layer.track_running_stats:
            raise _Cannot("keeps running statistics: take a batch norm for that")
        own = self._on_group
        return InstanceNorm(layer.num_features, layer.eps, layer.affine, grid=self.grid) if own else None

    def _group_norm(self, layer: nn.GroupNorm) -> nn.Module | None:
        own = self._on_group
        return GroupNorm(layer.num_groups, layer.num_channels, layer.eps, layer.affine, grid=self.grid) if own else None

    def _layer_norm(self, layer: nn.LayerNorm) -> nn.Module | None:
        if not self._on_group:
            return None
        if len(layer.normalized_shape) > 1 or not over_channels(layer, self.d):
            raise _Cannot("normalises the last axes, which are space here: take one over channels, as LayerNorm2d")
        return ChannelNorm(layer.normalized_shape[0], layer.eps, layer.elementwise_affine)

    @property
    def _on_group(self) -> bool:
        """Whether features have an axis of H where the network is now."""
        return self.lifted and not self.projected

    def _max(self, layer: nn.MaxPool2d) -> nn.Module:
        if layer.ceil_mode or layer.return_indices or _one("dilation", layer.dilation) != 1:
            raise _Cannot("rounds up, returns indices or is dilated")
        size, factor, padding = (_one(name, getattr(layer, name)) for name in ("kernel_size", "stride", "padding"))
        # The maximum around every sample, then smoothing: sizes as before, but symmetric about the centre.
        pool = MaxPool(size, 1, padding)
        return pool if factor == 1 else nn.Sequential(pool, Downsample(factor))

    def _mean(self, layer: nn.AvgPool2d) -> nn.Module:
        size, factor, padding = (_one(name, getattr(layer, name)) for name in ("kernel_size", "stride", "padding"))
        if size != factor or padding:
            raise _Cannot("averages overlapping windows: use liespline.nn.Downsample")
        if getattr(layer, "divisor_override", None) is not None:
            raise _Cannot("has a divisor_override, so it is no mean: leave it out")
        # Downsample rounds up; to round down, it gets no more than whole windows.
        return Downsample(factor) if layer.ceil_mode else nn.Sequential(WholeWindows(factor), Downsample(factor))

    def _to_one(self, layer: nn.Module) -> nn.Module:
        if _one("output_size", layer.output_size) != 1:  # type: ignore[arg-type]
            raise _Cannot("keeps several positions, which linear layers behind it would tell apart: pool to 1")
        return self._behind_projection(layer)

    def _behind_projection(self, layer: nn.Module) -> nn.Module:
        self.projected = True
        return nn.Sequential(Project("max", self.grid), copy.deepcopy(layer))

    def _up(self, layer: nn.Upsample) -> nn.Module:
        factor = layer.scale_factor
        if layer.size is not None or not isinstance(factor, int | float) or factor != int(factor):
            raise _Cannot("needs a whole scale_factor")
        return Upsample(int(factor))

    def _dimension(self, d: int) -> None:
        if d != self.d:
            raise _Cannot(f"has {d} space axes, but {self.grid.group!r} acts on {self.d}")


def _one(name: str, value: int | Sequence[int]) -> int:
    """Return the number that holds for all axes."""
    values = {value} if isinstance(value, int) else set(value)
    if len(values) != 1:
        raise _Cannot(f"has {name} = {value}, which is not the same for all axes")
    return values.pop()
