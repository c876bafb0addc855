"""Which layers of a network follow each other, and nothing else comes between."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeGuard

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.utils import _triple

from ..nn import BatchNorm, GConv, Lift, MaxPool, NormAct

CONV: tuple[type[nn.Module], ...] = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_ELEMENTWISE = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus,
    nn.Sigmoid, nn.Tanh, nn.Hardswish, nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d,
)  # fmt: skip


@dataclass
class Order:
    """What is known of a network's order, all by the ids of its modules."""

    norm_of: dict[int, _BatchNorm] = field(default_factory=dict)
    """The batch norm that follows a layer, or a plain convolution, and nothing else."""
    flat_output: set[int] = field(default_factory=set)
    """Layers whose output goes to another layer only, by way of modules that do not care about its shape …"""
    flat_input: set[int] = field(default_factory=set)
    """… and the layers it goes to."""
    flat_pools: dict[int, int] = field(default_factory=dict)
    """The pools on such ways, and the dimension of their space."""


def read_order(net: nn.Module) -> Order:
    """Go through every Sequential and note which layers, norms and pools follow each other."""
    uses = Counter(id(child) for module in net.modules() for child in module._modules.values())
    order = Order()
    for sequential in filter(_runs_in_order, net.modules()):
        modules = list(_in_order(sequential, uses))
        for conv, norm in pairwise(modules):
            once = uses[id(conv)] == uses[id(norm)] == 1
            takes_norm = isinstance(conv, Lift | GConv) or (type(conv) in CONV and not has_hooks(conv))
            if once and takes_norm and _is_affine_norm(norm):
                order.norm_of[id(conv)] = norm
        _keep_flat(modules, uses, order)
    return order


def has_hooks(module: nn.Module) -> bool:
    """Whether calling a module does more than its `forward`."""
    return bool(module._forward_hooks or module._forward_pre_hooks)


def is_plane_pool(pool: nn.Module) -> bool:
    """Whether a pool sees one element of H at a time."""
    if not isinstance(pool, nn.MaxPool3d) or pool.return_indices or has_hooks(pool):
        return False
    return [_triple(value)[0] for value in (pool.kernel_size, pool.stride, pool.padding)] == [1, 1, 0]


def _keep_flat(modules: list[nn.Module], uses: Counter[int], order: Order) -> None:
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
        elif once and (is_plane_pool(module) or (isinstance(module, MaxPool) and not has_hooks(module))):
            pools.append(module)
        elif id(module) not in gone and (type(module) not in _ELEMENTWISE or has_hooks(module)):
            layer = None


def _is_affine_norm(module: nn.Module) -> TypeGuard[_BatchNorm]:
    known = isinstance(module, _BatchNorm) and type(module).forward in (_BatchNorm.forward, BatchNorm.forward)
    # Without running statistics it normalises by those of its input, in eval mode too.
    return known and module.running_mean is not None and not has_hooks(module)


def _runs_in_order(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential) and type(module).forward in (nn.Sequential.forward, NormAct.forward)


def _in_order(sequential: nn.Module, uses: Counter[int]) -> Iterator[nn.Module]:
    """Yield what a Sequential runs, those inside it included where they are used nowhere else."""
    for child in sequential._modules.values():  # children() would skip the second of two ReLUs that are one object
        assert child is not None
        if _runs_in_order(child) and uses[id(child)] == 1 and not has_hooks(child):
            yield from _in_order(child, uses)
        else:
            yield child
