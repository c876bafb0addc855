"""A trained network as plain convolutions: the kernels are sampled once, and no layer of splines is left."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.utils import _triple
from torch.nn.utils.fusion import fuse_conv_bn_weights

from .compact import keep_weights
from .functional import Padding, disc_pad
from .nn import BatchNorm, Depthwise, GConv, Lift, MaxPool, NormReLU

_Make = Callable[..., nn.Module]
_CONV: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_POOL: tuple[_Make, ...] = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
_PAD: dict[str, tuple[_Make, ...]] = {
    "zeros": (nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d),
    "reflect": (nn.ReflectionPad1d, nn.ReflectionPad2d, nn.ReflectionPad3d),
    "replicate": (nn.ReplicationPad1d, nn.ReplicationPad2d, nn.ReplicationPad3d),
    "circular": (nn.CircularPad1d, nn.CircularPad2d, nn.CircularPad3d),
}
_ELEMENTWISE = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus,
    nn.Sigmoid, nn.Tanh, nn.Hardswish, nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d,
)  # fmt: skip


def export(net: nn.Module, *, compact: bool = False) -> nn.Module:
    """Return the same network for inference, correlations as plain `Conv1d/2d/3d` and reshapes; `net` stays as it is.

    out = correlate(kernel, x) + bias with the kernel of eq. BSplinesOnG sampled: each `Lift` and `GConv` becomes one
    convolution of `(B, C·N_h, *space)`, reshaped to and from what your own `forward` sees. Inside an `nn.Sequential`,
    whose children are taken to be called by it alone, reshapes that undo each other are left out and a batch norm that
    follows a layer goes into its convolution.

    `compact=True` keeps the spline weights and computes the kernels from them in `forward`: a file of about their size,
    for runtimes that compute constants once when they load it. Kernels take N_h times the memory or more.

    The result is in eval mode, without gradients, and goes through `torch.export` and `torch.onnx.export` as it is.
    Raises ValueError for weights that are NaN or infinite, and for layers with hooks or a `forward` of their own.
    """
    if not isinstance(net, nn.Module):
        raise ValueError(f"export: net is a {type(net).__name__}, must be an nn.Module")
    net = getattr(net, "_orig_mod", net)  # what torch.compile wraps
    for name, parameter in net.named_parameters():
        bad = int((~parameter.isfinite()).sum())
        if bad:
            raise ValueError(
                f"export: {bad} of the {parameter.numel()} numbers in {name!r} are NaN or infinite; training diverged?"
            )
    order = _read(net)
    plain: dict[int, nn.Module] = {id(norm): nn.Identity() for norm in order.norm_of.values()}
    for name, module in net.named_modules():
        if isinstance(module, Lift | GConv):
            _check_replaceable(name, module)
            plain[id(module)] = _convolution(module, order, compact)
        elif isinstance(module, Depthwise):
            plain[id(module)] = _depthwise(module)
        elif id(module) in order.norm_of:
            fused = plain[id(module)] = copy.deepcopy(module)
            fused.weight, fused.bias = _with_norm(module.weight, module.bias, order.norm_of[id(module)])
        elif id(module) in order.flat_pools:
            plain[id(module)] = _flat_pool(module, order.flat_pools[id(module)])
        elif _is_plane_pool(module):
            plain[id(module)] = PlanePool(_flat_pool(module, 2))
    # deepcopy looks copies up in its memo: every use of a layer becomes its plain form.
    return copy.deepcopy(net, plain).eval().requires_grad_(False)


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


def _is_plane_pool(pool: nn.Module) -> bool:
    if not isinstance(pool, nn.MaxPool3d) or pool.return_indices or _has_hooks(pool):
        return False
    return [_triple(value)[0] for value in (pool.kernel_size, pool.stride, pool.padding)] == [1, 1, 0]


def _flat_pool(pool: nn.Module, d: int) -> nn.Module:
    """Return a pool over the space of `(B, C, N_h, *space)` as the same on `(B, C·N_h, *space)`."""
    if isinstance(pool, MaxPool):
        return _POOL[d - 1](pool.kernel_size, pool.stride, pool.padding)
    assert isinstance(pool, nn.MaxPool3d)
    window, stride, padding, dilation = (
        _triple(value)[1:] for value in (pool.kernel_size, pool.stride, pool.padding, pool.dilation)
    )
    return nn.MaxPool2d(window, stride, padding, dilation, ceil_mode=pool.ceil_mode)


@torch.no_grad()
def _convolution(layer: Lift | GConv, order: _Order, compact: bool) -> nn.Module:
    """Return the layer as [Flatten,] [padding,] Conv or Linear[, Unflatten]."""
    kernel, weight, bias = layer.kernel(), layer.weight, layer.bias  # (out, N_h_out, in[, N_h_in], *window)
    if id(layer) in order.norm_of:
        weight, _ = _with_norm(weight, bias, order.norm_of[id(layer)])
        kernel, bias = _with_norm(kernel, bias, order.norm_of[id(layer)])
    n_out = kernel.shape[1]
    kernel = kernel.flatten(0, 1).flatten(1, 2) if isinstance(layer, GConv) else kernel.flatten(0, 1)
    stages: list[nn.Module] = []
    if isinstance(layer, GConv) and id(layer) not in order.flat_input:
        stages.append(nn.Flatten(1, 2))
    if layer.groups > 1 and kernel.ndim == 2:
        kernel = torch.block_diag(*kernel.chunk(layer.groups))
    stages += _unset(layer, kernel, has_bias=bias is not None, groups=layer.groups)
    stages[-1].weight = nn.Parameter(kernel.contiguous())
    if compact and kernel.ndim > 2:
        keep_weights(stages[-1], layer, weight)
    if bias is not None:
        stages[-1].bias = nn.Parameter(bias.repeat_interleave(n_out))
    if id(layer) not in order.flat_output:
        stages.append(nn.Unflatten(1, (layer.out_channels, n_out)))
    return stages[0] if len(stages) == 1 else nn.Sequential(*stages)


@torch.no_grad()
def _depthwise(layer: Depthwise) -> nn.Module:
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
        spread = tuple(p for pair in zip(reversed(before), reversed(after), strict=True) for p in pair)
        pads, before, mode = [_PAD[layer.padding_mode][len(window) - 1](spread)], (0,) * len(window), "zeros"
    conv = _CONV[len(window) - 1]
    options = {"bias": has_bias, "padding_mode": mode, "groups": groups, "device": "meta"}
    return [*pads, conv(groups * columns, rows, window, layer.stride, before, **options)]


def _with_norm(kernel: Tensor, bias: Tensor | None, norm: _BatchNorm) -> tuple[nn.Parameter, nn.Parameter]:
    """Return the kernel `(out, …)` and bias `(out,)` of a convolution followed by a batch norm in eval mode."""
    mean, variance = norm.get_buffer("running_mean"), norm.get_buffer("running_var")
    return fuse_conv_bn_weights(kernel, bias, mean, variance, norm.eps, norm.weight, norm.bias)


def _check_replaceable(name: str, layer: Lift | GConv) -> None:
    kind = next(base for base in (Lift, GConv) if isinstance(layer, base))
    if type(layer).forward is not kind.forward or type(layer).kernel is not kind.kernel:
        raise ValueError(
            f"export: layer {name!r} is a {type(layer).__name__} with a forward of its own, which a convolution cannot "
            f"replace; hold a {kind.__name__} as a submodule instead of deriving from it"
        )
    if _has_hooks(layer):
        raise ValueError(f"export: layer {name!r} has forward hooks, which a convolution would not call; remove them")


# ---- which layers follow each other in a Sequential ----


@dataclass
class _Order:
    """What is known of a network's order, all by the ids of its modules."""

    norm_of: dict[int, _BatchNorm] = field(default_factory=dict)
    """The batch norm that follows a layer, or a plain convolution, and nothing else."""
    flat_output: set[int] = field(default_factory=set)
    """Layers whose output goes to another layer only, by way of modules that do not care about its shape …"""
    flat_input: set[int] = field(default_factory=set)
    """… and the layers it goes to."""
    flat_pools: dict[int, int] = field(default_factory=dict)
    """The pools on such ways, and the dimension of their space."""


def _read(net: nn.Module) -> _Order:
    """Go through every Sequential and note which layers, norms and pools follow each other."""
    uses = Counter(id(child) for module in net.modules() for child in module._modules.values())
    order = _Order()
    for sequential in filter(_runs_in_order, net.modules()):
        modules = list(_in_order(sequential, uses))
        for conv, norm in pairwise(modules):
            once = uses[id(conv)] == uses[id(norm)] == 1
            if once and _takes_norm(conv) and _is_affine_norm(norm):
                order.norm_of[id(conv)] = norm
        _keep_flat(modules, uses, order)
    return order


def _keep_flat(modules: list[nn.Module], uses: Counter[int], order: _Order) -> None:
    """Note where one layer's output reaches the next without a need for its own axis of H."""
    gone = {id(norm) for norm in order.norm_of.values()}
    layer: Lift | GConv | None = None  # the one whose output, but for values and size of space, is at hand
    pools: list[nn.Module] = []
    for module in modules:
        once = uses[id(module)] == 1
        if isinstance(module, Lift | GConv) and once:
            if layer is not None and isinstance(module, GConv):
                order.flat_output.add(id(layer))
                order.flat_input.add(id(module))
                order.flat_pools |= {id(pool): len(layer.kernel_size) for pool in pools}
            layer, pools = module, []
        elif once and (_is_plane_pool(module) or (isinstance(module, MaxPool) and not _has_hooks(module))):
            pools.append(module)
        elif id(module) not in gone and (type(module) not in _ELEMENTWISE or _has_hooks(module)):
            layer = None


def _takes_norm(module: nn.Module) -> bool:
    return isinstance(module, Lift | GConv) or (type(module) in _CONV and not _has_hooks(module))


def _is_affine_norm(module: nn.Module) -> TypeGuard[_BatchNorm]:
    known = isinstance(module, _BatchNorm) and type(module).forward in (_BatchNorm.forward, BatchNorm.forward)
    # Without running statistics it normalises by those of its input, in eval mode too.
    return known and module.running_mean is not None and not _has_hooks(module)


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._forward_hooks or module._forward_pre_hooks)


def _runs_in_order(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential) and type(module).forward in (nn.Sequential.forward, NormReLU.forward)


def _in_order(sequential: nn.Module, uses: Counter[int]) -> Iterator[nn.Module]:
    """Yield what a Sequential runs, those inside it included where they are used nowhere else."""
    for child in sequential._modules.values():  # children() would skip the second of two ReLUs that are one object
        assert child is not None
        if _runs_in_order(child) and uses[id(child)] == 1 and not _has_hooks(child):
            yield from _in_order(child, uses)
        else:
            yield child
