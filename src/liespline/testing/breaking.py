"""How much of its symmetry a network has given up, and which elements are left."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ..grids import uniform
from ..nn import FrameBias
from .probe import evaluating, layer_outputs

KEPT = 0.1
"""A bias that changes by less than this share of how it varies counts as unchanged."""


class Breaking(NamedTuple):
    """What one `FrameBias` of a network does: `broken` is 0 where the layer is equivariant."""

    layer: str
    broken: float
    """How much its bias varies over the group, over how much its output varies: root mean squares."""
    change: Tensor
    """How far h·b is from b for each element h, over how far two unrelated ones are: `(N,)`, 0 to about 1."""

    @property
    def kept(self) -> list[int]:
        """The numbers of the elements to which the layer is still equivariant."""
        return torch.nonzero(self.change < KEPT).flatten().tolist()


def breaking(net: nn.Module, x: Tensor, elements: Tensor | None = None) -> list[Breaking]:
    """For each `FrameBias` of a network: how much it breaks on images x, and for which elements.

    `elements` `(N, *element_shape)` are those of the layer's grid by default; on S², 12 rotations.
    """
    named = [(name, layer) for name, layer in net.named_modules() if isinstance(layer, FrameBias)]
    if not named:
        raise ValueError(f"breaking: this {type(net).__name__} has no FrameBias; it is built with breaking=True")
    with torch.no_grad(), evaluating(net):
        outputs = layer_outputs(net, [layer for _, layer in named], x)
        return [_of(name, layer, out, elements) for (name, layer), out in zip(named, outputs, strict=True)]


def _of(name: str, layer: FrameBias, output: Tensor, elements: Tensor | None) -> Breaking:
    grid, acting = layer.grid, layer.grid.group.quotient_of
    moves = elements if elements is not None else grid.elements if acting is None else uniform(acting, 12).elements
    own, moved = layer.bias(), layer.bias(moves.to(layer.samples))
    varies = layer.penalty().div(layer.channels).sqrt()
    features = output.transpose(0, 1).flatten(1).std(1).square().mean().sqrt()
    change = (moved - own).square().mean((1, 2)).sqrt() / (2**0.5 * varies).clamp_min(1e-30)
    return Breaking(name, float(varies / features), change.cpu())
