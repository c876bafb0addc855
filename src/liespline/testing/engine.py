"""Which path each layer of a network takes for an input, and why: what to look at where a layer is slow."""

import copy
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..nn.base import Correlation
from ..ops import choose, decide, trust


class LayerPath(NamedTuple):
    """The path of a layer, and what each path that takes it would cost, in multiplications of the whole input."""

    name: str
    layer: str
    path: str
    prices: dict[str, float]


class Engine(NamedTuple):
    """The layers in the order in which they are called, and which of our kernels are off here and why."""

    layers: tuple[LayerPath, ...]
    off: tuple[str, ...]

    def __str__(self) -> str:
        costs = [layer.prices.get(layer.path, min(layer.prices.values(), default=0.0)) for layer in self.layers]
        total = sum(costs)
        rows = [("layer", "", "path", "share", "others, times its price")]
        doubted: dict[str, None] = {}
        for layer, own in zip(self.layers, costs, strict=True):
            others = sorted((price / own, name) for name, price in layer.prices.items() if name != layer.path)
            said = ", ".join(f"{name} {times:.2g}" for times, name in others)
            doubted |= {name: None for times, name in others if times < 1 and name in decide.WORTH}
            share = f"{own / total:.0%}" if layer.prices else ""
            rows.append((layer.name, layer.layer, layer.path, share, said))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        notes = [f"{name} is taken below {decide.WORTH[name]}: its price is less sure" for name in doubted]
        return "\n".join([*(line.rstrip() for line in lines), *notes, *self.off])


@torch.no_grad()
def engine(net: nn.Module, x: Tensor) -> Engine:
    """Print and return which path each layer takes for such an input, with the prices of the others.

    A path is a way to compute the same numbers; the cheapest by an estimate is taken. `share` is a layer's part of what
    all correlations cost. Below stands which of liespline's own kernels are off, and what they would need. Norms and
    the layers of torch are not priced. The network is run once, as a copy and uncompiled, in the mode it is in.
    """
    net = copy.deepcopy(getattr(net, "_orig_mod", net))  # as it is not to be hooked, nor its statistics to move
    found: list[LayerPath] = []
    with choose.watched() as asked:
        for name, module in net.named_modules():
            if isinstance(module, Correlation):
                module.register_forward_hook(_hook(name, asked, found))
        net(x)
    on_cpu = f"kernels of liespline's own are for NVIDIA GPUs: the input is on {x.device.type!r}"
    dtypes = {one.question.dtype: None for one in asked} or {x.dtype: None}
    said = ((one.name, trust.off(kind, x.device, dtype)) for kind, one in trust.KINDS.items() for dtype in dtypes)
    off = {f"{name} off: {why}": None for name, why in said if why}
    report = Engine(tuple(found), tuple(off) if x.is_cuda else (on_cpu,))
    print(report)
    return report


def _hook(name: str, asked: list[choose.Asked], found: list[LayerPath]) -> Callable[..., None]:
    def after(module: nn.Module, _: Any, __: Any) -> None:
        if not asked:  # channel groups are one convolution of torch
            found.append(LayerPath(name, type(module).__name__, "grouped convolution", {}))
            return
        latest = asked.pop()
        samples = latest.question.batch * math.prod(latest.question.size)
        prices = {path: price * samples for path, price in choose.prices(latest).items()}
        names = {path.name for path in latest.paths}
        path = "dense" if "dense" in prices and names <= {"cudnn", "plain"} else " and ".join(sorted(names))
        path = "blurred" if latest.blurred else path
        found.append(LayerPath(name, type(module).__name__, path, prices))

    return after
