"""A bias on the group: how a network may tell orientations apart, seen from the image's own frame or a given one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from .._check import whole
from .._torch import as_new, full_precision
from ..grids import Grid
from ..grids.grid import on_cpu
from ..groups import Group
from ..splines import SplineBasis
from . import arguments
from .shift import Shiftable, renew


class FrameBias(Shiftable):
    """Adds a function on the group to every channel: y_c(x, h) = F_c(x, h) + b_c(g⁻¹h), b_c(h) = Σ_j β_cj B(h_j⁻¹h).

    `(B, channels, N_h, *space)` stays that shape; β, `weight`, is zero at first, and the layer the identity. With
    g = e the network may use the image's own frame, and is equivariant to those elements alone that leave every b_c as
    it is. With a frame g for each sample, `with in_frame(net, g):`, it is equivariant to image and frame together:
    h·x seen from h·g gives h·y. `basis` is a spline on each element of the grid by default.
    """

    samples: Tensor

    def __init__(self, channels: int, grid: Grid, basis: SplineBasis | None = None) -> None:
        super().__init__()
        self.channels = whole("FrameBias", "channels", channels)
        self.grid = arguments.grid("FrameBias", "grid", grid)
        self.basis = arguments.h_basis("FrameBias", basis, grid)
        if self.basis.trainable:
            raise ValueError("FrameBias: basis has trainable centres; its splines stay where they are")
        self.frame: Tensor | None = None
        self.weight = nn.Parameter(torch.empty(channels, len(self.basis)))
        self.register_buffer("samples", as_new(self._exact_samples()), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make the layer the identity."""
        nn.init.zeros_(self.weight)

    @on_cpu
    def _exact_samples(self) -> Tensor:
        """The splines at the elements of the grid, `(N_h, N)`, seen from e."""
        return self.basis(self.grid.elements)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> FrameBias:
        super()._apply(fn, recurse)
        self._rederive()
        return self

    def _rederive(self) -> None:
        renew(self.samples, self._exact_samples())

    def bias(self, frame: Tensor | None = None) -> Tensor:
        """b_c(g⁻¹h) at the elements of the grid: `(channels, N_h)`, or one per frame g, `(B, channels, N_h)`."""
        samples = self.samples if frame is None else self.basis(seen_from(self.grid, frame)).to(self.samples)
        with full_precision(samples.device):
            return torch.einsum("cj,...hj->...ch", self.weight.to(samples.dtype), samples)

    def forward(self, x: Tensor) -> Tensor:
        """Add the bias to `(B, channels, N_h, *space)`."""
        if x.ndim < 3 or x.shape[1:3] != (self.channels, len(self.grid)):
            raise ValueError(
                f"FrameBias: x has shape {tuple(x.shape)}; expected (B, {self.channels}, {len(self.grid)}, *space)"
            )
        bias = self.bias(self.frame)
        return x + bias.to(x.dtype).view(*bias.shape, *(1,) * (x.ndim - 3))

    def penalty(self) -> Tensor:
        """‖b − b̄‖², the mean over H of what differs between its elements, summed over channels: 0 is equivariant."""
        bias = self.bias()
        share = self.grid.weights.to(bias) / self.grid.weights.sum()
        return ((bias - (bias * share).sum(-1, keepdim=True)).square() * share).sum()

    def extra_repr(self) -> str:
        """Show channels, grid and splines."""
        return f"{self.channels}, {self.grid!r}, N={len(self.basis)}"


class InFrame(nn.Module):
    """A network with biases on the group, which takes the frame with the image: `net(x)` or `net(x, frame=g)`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, frame: Tensor | None = None) -> Tensor:
        """Map images `(B, C, *space)`, seen from the frames `(B, *element_shape)`, one for all, or their own."""
        if frame is None:
            return self.network(x)
        with in_frame(self.network, frame):
            return self.network(x)


@contextmanager
def in_frame(network: nn.Module, frame: Tensor) -> Iterator[nn.Module]:
    """Let every `FrameBias` of a network see from these frames in the block."""
    layers = [layer for layer in network.modules() if isinstance(layer, FrameBias)]
    if not layers:
        raise ValueError(f"in_frame: this {type(network).__name__} has no FrameBias, so no frame changes it")
    before = [layer.frame for layer in layers]
    try:
        for layer in layers:
            layer.frame = frame
        yield network
    finally:
        for layer, own in zip(layers, before, strict=True):
            layer.frame = own


def seen_from(grid: Grid, frame: Tensor) -> Tensor:
    """The elements g⁻¹h of a grid, seen from one frame g or from each of a batch: `(…, N_h, *element_shape)`."""
    group: Group = grid.group
    acting: Group = group.quotient_of or group
    if frame.shape[-len(acting.element_shape) or frame.ndim :] != acting.element_shape or not (
        0 <= frame.ndim - len(acting.element_shape) <= 1
    ):
        shape = ", ".join(map(str, acting.element_shape))
        raise ValueError(f"frame has shape {tuple(frame.shape)}; elements of {acting!r} are ({shape}) or (B, {shape})")
    back = acting.inverse(frame).unsqueeze(-1 - len(acting.element_shape))
    elements = grid.elements.to(frame)
    return acting.product(back, elements) if acting is group else acting.act(back, elements)
