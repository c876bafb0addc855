"""Each layer as plain convolutions and pools of `(B, C·N_h, *space)`."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.utils import _triple
from torch.nn.utils import parametrize
from torch.nn.utils.fusion import fuse_conv_bn_weights

from .. import functional
from ..functional import Padding, disc_pad
from ..functional.border import spread
from ..nn import Depthwise, GConv, Lift, MaxPool
from .order import CONV, Order

_Make = Callable[..., nn.Module]
_POOL: tuple[_Make, ...] = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
_PAD: dict[str, tuple[_Make, ...]] = {
    "zeros": (nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d),
    "reflect": (nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d),
    "replicate": (nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d),
    "circular": (nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d),
}


class PlanePool(nn.Module):
    """`MaxPool3d((1, k, k))` as the `MaxPool2d` it is, on each plane of `(…, C, N_h, H, W)`: several times faster."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        """Pool the last two axes."""
        pooled: Tensor = self.pool(x.flatten(-4, -3))
        return pooled.unflatten(-3, x.shape[-4:-2])


class DiscPad(nn.Module):
    """Padding about a disc, which no convolution does by itself."""

    def __init__(self, padding: Padding) -> None:
        super().__init__()
        self.padding = padding

    def forward(self, x: Tensor) -> Tensor:
        """Pad `(B, C, *space)`."""
        return disc_pad(x, self.padding)


class Sampled(nn.Module):
    """A parametrisation of a plain convolution's weight: the sampled kernel of eq. BSplinesOnG, from its weights."""

    x_samples: Tensor
    h_samples: Tensor | None

    def __init__(self, layer: Lift | GConv) -> None:
        super().__init__()
        x_samples, h_samples = layer.samples()
        self.register_buffer("x_samples", x_samples.detach().clone())
        self.register_buffer("h_samples", None if h_samples is None else h_samples.detach().clone())

    def forward(self, weight: Tensor) -> Tensor:
        """Return the kernel `(out·N_h, in[·N_h], *window)`."""
        if self.h_samples is None:
            return functional.lift_kernel(weight, self.x_samples[:, 0]).flatten(0, 1)
        return functional.kernel(weight, self.x_samples, self.h_samples).flatten(0, 1).flatten(1, 2)


def flat_pool(pool: nn.Module, d: int) -> nn.Module:
    """Return a pool over the space of `(B, C, N_h, *space)` as the same on `(B, C·N_h, *space)`."""
    if isinstance(pool, MaxPool):
        return _POOL[d - 1](pool.kernel_size, pool.stride, pool.padding)
    assert isinstance(pool, nn.MaxPool3d)
    window, stride, padding, dilation = (
        _triple(value)[1:] for value in (pool.kernel_size, pool.stride, pool.padding, pool.dilation)
    )
    return nn.MaxPool2d(window, stride, padding, dilation, ceil_mode=pool.ceil_mode)


@torch.no_grad()
def convolution(layer: Lift | GConv, order: Order, compact: bool) -> nn.Module:
    """Return the layer as [Flatten,] [padding,] Conv or Linear[, Unflatten]."""
    kernel, weight, bias = layer.kernel(), layer.weight, layer.bias  # (out, N_h_out, in[, N_h_in], *window)
    if id(layer) in order.norm_of:
        weight, _ = with_norm(weight, bias, order.norm_of[id(layer)])
        kernel, bias = with_norm(kernel, bias, order.norm_of[id(layer)])
    n_out = kernel.shape[1]
    fields = layer.samples()[1] is not None  # an axis of H, or of components, beside the channels
    kernel = kernel.flatten(0, 1).flatten(1, 2) if fields else kernel.flatten(0, 1)
    stages: list[nn.Module] = []
    if fields and id(layer) not in order.flat_input:
        stages.append(nn.Flatten(1, 3 if layer.in_type == "tensor" else 2))
    if layer.groups > 1 and kernel.ndim == 2:
        kernel = torch.block_diag(*kernel.chunk(layer.groups))
    stages += _unset(layer, kernel, has_bias=bias is not None, groups=layer.groups)
    stages[-1].weight = nn.Parameter(kernel.contiguous())
    if compact and kernel.ndim > 2:
        # The convolution holds the spline weights, and samples its kernel, of another shape, from them in `forward`.
        stages[-1].weight = nn.Parameter(weight.detach().clone())
        parametrize.register_parametrization(stages[-1], "weight", Sampled(layer), unsafe=True)
    if bias is not None:
        stages[-1].bias = nn.Parameter(bias.repeat_interleave(n_out))
    if id(layer) not in order.flat_output:
        stages.append(nn.Unflatten(1, (layer.out_channels, n_out)))
    return stages[0] if len(stages) == 1 else nn.Sequential(*stages)


@torch.no_grad()
def depthwise(layer: Depthwise) -> nn.Module:
    """Return the layer as Flatten, [padding,] a convolution with a group per field, Unflatten."""
    kernel = layer.kernel()  # (C, N_h, *window)
    shape, flat = kernel.shape[:2], kernel.flatten(0, 1).unsqueeze(1)
    stages = _unset(layer, flat, has_bias=layer.bias is not None, groups=len(flat))
    stages[-1].weight = nn.Parameter(flat.contiguous())
    if layer.bias is not None:
        stages[-1].bias = nn.Parameter(layer.bias.repeat_interleave(shape[1]))
    return nn.Sequential(nn.Flatten(1, 2), *stages, nn.Unflatten(1, shape))


def _unset(layer: Lift | GConv | Depthwise, kernel: Tensor, *, has_bias: bool, groups: int = 1) -> list[nn.Module]:
    """Return the padding that a convolution cannot do by itself, if any, and the convolution, its weights unset."""
    rows, columns, *window = kernel.shape
    if not window:
        return [nn.Linear(columns, rows, bias=has_bias, device="meta")]
    before, after = layer.borders
    pads: list[nn.Module] = []
    mode = layer.padding_mode if any(before) else "zeros"
    if layer.padding_mode == "disc":
        pads, before, mode = [DiscPad(layer.borders)], (0,) * len(window), "zeros"
    elif before != after or min(before) < 0:  # even windows, and windows below kernel_size, which crop
        pad = _PAD[layer.padding_mode][len(window) - 1](tuple(spread(layer.borders)))
        pads, before, mode = [pad], (0,) * len(window), "zeros"
    conv = CONV[len(window) - 1]
    options = {"bias": has_bias, "padding_mode": mode, "groups": groups, "device": "meta"}
    return [*pads, conv(groups * columns, rows, window, layer.stride, before, **options)]


def with_norm(kernel: Tensor, bias: Tensor | None, norm: _BatchNorm) -> tuple[nn.Parameter, nn.Parameter]:
    """Return the kernel `(out, …)` and bias `(out,)` of a convolution followed by a batch norm in eval mode."""
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    return fuse_conv_bn_weights(kernel, bias, mean, variance, norm.eps, norm.weight, norm.bias)
