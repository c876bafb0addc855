"""A trained network as plain convolutions: the kernels are sampled once, and no layer of splines is left."""

import copy

from torch import nn

from ..nn import Depthwise, GConv, Lift
from .layers import PlanePool, convolution, depthwise, flat_pool, with_norm
from .order import has_hooks, is_plane_pool, read_order

__all__ = ["export"]


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
    order = read_order(net)
    plain: dict[int, nn.Module] = {id(norm): nn.Identity() for norm in order.norm_of.values()}
    for name, module in net.named_modules():
        if isinstance(module, Lift | GConv):
            _check_replaceable(name, module)
            plain[id(module)] = convolution(module, order, compact)
        elif isinstance(module, Depthwise):
            plain[id(module)] = depthwise(module)
        elif id(module) in order.norm_of:
            fused = plain[id(module)] = copy.deepcopy(module)
            fused.weight, fused.bias = with_norm(module.weight, module.bias, order.norm_of[id(module)])
        elif id(module) in order.flat_pools:
            plain[id(module)] = flat_pool(module, order.flat_pools[id(module)])
        elif is_plane_pool(module):
            plain[id(module)] = PlanePool(flat_pool(module, 2))
    # deepcopy looks copies up in its memo: every use of a layer becomes its plain form.
    return copy.deepcopy(net, plain).eval().requires_grad_(False)


def _check_replaceable(name: str, layer: Lift | GConv) -> None:
    kind = next(base for base in (Lift, GConv) if isinstance(layer, base))
    if type(layer).forward is not kind.forward or type(layer).kernel is not kind.kernel:
        raise ValueError(
            f"export: layer {name!r} is a {type(layer).__name__} with a forward of its own, which a convolution cannot "
            f"replace; hold a {kind.__name__} as a submodule instead of deriving from it"
        )
    if has_hooks(layer):
        raise ValueError(f"export: layer {name!r} has forward hooks, which a convolution would not call; remove them")
