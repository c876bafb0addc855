"""The grids of a network moved on the group, for equivariance between their elements too."""

from __future__ import annotations

import copy
from functools import lru_cache
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from .._torch import beside, has_values
from ..grids import Grid
from ..grids.grid import on_cpu
from ..groups import Group
from .ensemble import Ensemble


class Shiftable(nn.Module):
    """A layer that knows where its grids were built, and can derive all its buffers from where they are now."""

    _home: dict[str, Any] | None = None

    def shift(self, h: Tensor | None) -> None:
        """Move the grids from where they were built to h·H; None brings them back."""
        if self._home is None:
            self._home = {name: getattr(self, name) for name in ("grid", "out_grid", "window") if hasattr(self, name)}
        for name, value in self._home.items():
            setattr(self, name, moved(value, h) if h is not None and isinstance(value, Grid) else value)
        self._rederive()

    def _rederive(self) -> None:
        raise NotImplementedError


def renew(buffer: Tensor, exact: Tensor) -> None:
    """Copy exact values from the CPU into the memory that a buffer has, which other processes or a graph may know.

    A GPU is not waited for: a network that is shifted at every step would else wait for it a dozen times a step.
    """
    values = beside(exact, buffer).to(buffer.dtype)
    buffer.data.copy_(values.pin_memory() if buffer.is_cuda and has_values(buffer) else values, non_blocking=True)


class shift:
    """Make every grid H of a network h·H, in place: `shift(net, h)`, and `shift(net, None)` puts them back.

    h counts from where the grids were built, not from where the last call left them. Only the samples of kernels in
    space change: h⁻¹h̃ does not, nor does anything that is learned or saved. A network that is trained with h drawn
    anew at every step sees all of H, not only the grid; evaluation is not affected. In a `with` block the grids are
    put back at its end, to the bit.

    h is one element of the group, such as `torch.tensor([0.1])` for SO(2); on S² it is a rotation of SO(3).
    """

    def __init__(self, net: nn.Module, h: Tensor | None) -> None:
        self.net = net
        for layer in net.modules():
            if isinstance(layer, Shiftable):
                layer.shift(h)

    def __enter__(self) -> nn.Module:
        return self.net

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shift(self.net, None)


class GridAverage(Ensemble):
    """The mean of a network's output on several grids h₀·H, h₁·H, …, which divide each step of H evenly.

    out = 1/n Σ_k net_k(x), where net_k has the grids h_k·H and h_k = Exp(k/n · steps of H). It is about as equivariant
    as with n times as many elements, for n times the work. All have the parameters and statistics of `network`, which
    is trained or loaded before: this is for use.
    """

    def __init__(self, network: nn.Module, count: int = 2) -> None:
        if count < 1:
            raise ValueError(f"GridAverage: count = {count}, must be at least 1")
        grid = first_grid(network)
        super().__init__([network, *(_at(network, part_of_step(grid, k / count)) for k in range(1, count))])


def first_grid(network: nn.Module) -> Grid:
    """The grid of the first layer that has one on a group with a dimension to move along."""
    for layer in network.modules():
        grid = getattr(layer, "grid", None) if isinstance(layer, Shiftable) else None
        if isinstance(grid, Grid) and grid.group.dim:
            return grid
    raise ValueError(f"no layer of this {type(network).__name__} has a grid that can be moved on its group")


def part_of_step(grid: Grid, part: float | Tensor) -> Tensor:
    """The element Exp(part · steps of the grid); a part for all axes of the algebra, or one for each."""
    acting: Group = grid.group.quotient_of or grid.group
    size = torch.tensor(grid.steps, dtype=torch.float64)
    return acting.exp(part * (size if len(size) == acting.dim else size.mean().expand(acting.dim)))


def _at(network: nn.Module, h: Tensor) -> nn.Module:
    """The same network at h·H. Its weights are those of the first one, not copies of them."""
    apart = (layer for layer in network.modules() if isinstance(layer, Shiftable))
    own = {id(buffer) for layer in apart for buffer in layer.buffers(recurse=False)}
    tensors = (*network.parameters(), *(buffer for buffer in network.buffers() if id(buffer) not in own))
    there = copy.deepcopy(network, {id(tensor): tensor for tensor in tensors})
    shift(there, h)
    for layer in there.modules():
        if isinstance(layer, Shiftable):
            layer._home = None  # it lives here now: moving all of them moves this one as well
    return there


def moved(grid: Grid, h: Tensor) -> Grid:
    """Return h·H with the same Haar weights, which left translation leaves as they are."""
    if grid.group.dim == 0:
        return grid  # the trivial group has nowhere to go: a plain layer among equivariant ones
    h = h.detach().to("cpu", torch.float64)
    return _moved(grid, tuple(h.flatten().tolist()), tuple(h.shape))


@lru_cache(maxsize=16)  # the layers of a network share a grid or two
@on_cpu
def _moved(grid: Grid, values: tuple[float, ...], shape: tuple[int, ...]) -> Grid:
    group = grid.group
    acting: Group = group.quotient_of or group
    h = torch.tensor(values, dtype=torch.float64).view(shape)
    if h.shape != acting.element_shape:
        raise ValueError(f"shift: h has shape {tuple(h.shape)}; one element of {acting!r} has {acting.element_shape}")
    acting.require("shift: h", h)
    elements = acting.product(h, grid.elements) if acting is group else acting.act(h, grid.elements)
    return Grid(group, elements, grid.weights, grid.spacing)
