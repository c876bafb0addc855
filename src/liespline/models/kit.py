"""The layers that the ready-made networks are built of."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .._check import Size
from ..functional import Padding, disc_pad
from ..functional.border import radii, spread
from ..grids import Grid, disc
from ..grids.grid import on_cpu
from ..nn import Centre, FieldDropout, FrameBias, GConv, Lift, NormAct, Oversampled, Project, Restrict, SeparableGConv
from ..nn.norm import activation_named
from ..splines import SplineBasis
from .kernels import guarded, h_basis
from .precise import PreciseConv1d, PreciseConv2d, PreciseConv3d, PreciseLinear
from .pretrained import Framed, Pretrained

_POINTS = (PreciseConv1d, PreciseConv2d, PreciseConv3d)
_AVERAGE = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)


class Layers(NamedTuple):
    """What all layers of a network have in common, as its user asked for it."""

    size: int | Size
    """Of the windows in samples; one per axis not in ResNets."""
    kind: str
    n_k: int | Sequence[int] | None
    separable: bool
    disc: bool = False
    """Whether they look at the largest disc alone."""
    activation: str | None = None
    smooth: bool = False
    """Whether activations and the last maximum follow rotations between those of the grid."""
    breaking: bool = False
    """Whether a `FrameBias` stands behind every correlation."""
    norm: str = "batch"
    project: str = "max"
    """What is kept of a function on the group in the end, as `Project` names it."""


class Kit:
    """Makes the layers of a network on one grid and counts what they learn; a `dry` one counts and makes nothing."""

    def __init__(self, grid: Grid, layers: Layers, *, dry: bool = False) -> None:
        self.layers, self.dry = layers, dry
        self.kernel_size, self.separable, self.disc = layers.size, layers.separable, layers.disc
        self._activation = layers.activation or ("silu" if layers.smooth else "relu")
        activation_named("models", self._activation)
        self._border = "disc" if self.disc else "zeros"
        self.d = grid.group.space_dim
        self.first, self.parameters = grid, 0
        self._on(grid, layers.n_k)

    def _on(self, grid: Grid, n_k: int | Sequence[int] | None) -> None:
        """Make the layers that follow on this grid."""
        self.grid = grid
        self._finer = self.layers.smooth and len(grid) > 1  # a plain network has nothing to interpolate
        # A basis for each layer, which learns the centres of its own deformable kernels.
        self._basis = lambda: h_basis(grid, self.layers.kind, n_k)
        self._n_k, learned = len(self._basis()), self._basis().trainable
        self._n_centres = self._n_k * grid.group.dim if learned else 0

    def restrict(self, subgrid: Grid) -> Restrict:
        """From the group to a subgroup, on which all layers that follow are made."""
        layer = Restrict(self.grid, subgrid)
        self._on(layer.out_grid, None)
        return layer

    def lift(self, inputs: int, outputs: int, *, stride: int = 1) -> nn.Module:
        """From an image to the group, in a wide window."""
        size = self._wide
        padding = "same" if stride == 1 else tuple((side - 1) // 2 for side in size)
        return self._framed(
            self.first,
            outputs,
            inputs * outputs * _splines(size, self.first),
            lambda: Lift(inputs, outputs, size, self.first, stride=stride, padding=padding, **self._options(size)),
        )

    def halving(self, inputs: int, outputs: int) -> nn.Module:
        """From an image to the group at half the size, about the image's centre.

        Splines twice as wide hold little that every second sample cannot show. So it is as equivariant between the
        angles of the grid as a layer of common splines with `Downsample` behind it, and a stride alone is not.
        """
        window = self._wide[0]
        inner = window - 2 if window > 3 else window  # as many splines as the window would have
        size, basis = 2 * inner + 1, _twice_as_wide(inner, self.d)
        options = {"stride": 2, "padding": inner, "x_basis": basis, **self._options(size)}
        return self._framed(
            self.first,
            outputs,
            inputs * outputs * len(basis),
            lambda: nn.Sequential(Centre(2, disc=self.disc), Lift(inputs, outputs, size, self.first, **options)),
        )

    def conv(
        self, inputs: int, outputs: int, *, size: int | Size | None = None, padding: int | str = "same"
    ) -> nn.Module:
        """A group correlation."""
        window = self.kernel_size if size is None else size
        splines = _splines(window, self.grid)
        kind: type[GConv] | type[SeparableGConv] = GConv
        options = self._options(window)
        parameters = inputs * outputs * splines * self._n_k
        if self.separable and _sees_around(window):
            kind, parameters = SeparableGConv, inputs * outputs * self._n_k + outputs * splines
        return self._framed(
            self.grid,
            outputs,
            parameters + self._n_centres,
            lambda: guarded(
                kind(inputs, outputs, window, self.grid, h_basis=self._basis(), padding=padding, **options)
            ),
        )

    def norm(self, channels: int, dropout: float = 0.0) -> nn.Module:
        """A norm and an activation, and dropout of whole fields if asked for."""
        self.parameters += 2 * channels
        if self.dry:
            return nn.Identity()
        norm: nn.Sequential = NormAct(channels, self._activation, norm=self.layers.norm, grid=self.grid)
        if self._finer:
            norm = nn.Sequential(norm[0], Oversampled(norm[1], self.grid))
        return nn.Sequential(norm, FieldDropout(dropout)) if dropout else norm

    def head(self, inputs: int, width: int, classes: int, dropout: float) -> list[nn.Module]:
        """Feature maps to classes: a wide window that sees no border, a projection of H, the mean over space, an MLP.

        The mean is over all of space, or over a disc. Positions meet in that window before H is projected: features
        projected first would lose their relative poses.
        """
        project, features = self.project(width)
        linear = [  # drawn before the window, as they always were
            self._linear(features, width),
            activation_named("models", self._activation),
            nn.Dropout(dropout),
            self._linear(width, classes),
        ]
        size = self._wide
        window = [AtLeast(size, self._border), self.conv(inputs, width, size=size, padding=0), self.norm(width)]
        mean = DiscMean() if self.disc else _AVERAGE[self.d - 1](1)
        return [*window, project, mean, nn.Flatten(), *linear]

    def project(self, channels: int) -> tuple[nn.Module, int]:
        """What is kept of each channel over the group, and how many channels that makes."""
        how = self.layers.project
        layer = Project(how, self.grid, interpolate=4 if self._finer and how == "max" else 1)
        return layer, channels * layer.per_channel

    def points(self, inputs: int, outputs: int) -> nn.Module:
        """An ordinary 1-sample convolution of `(B, inputs, *space)`."""
        return self._make((inputs + 1) * outputs, lambda: _POINTS[self.d - 1](inputs, outputs, 1))

    @property
    def _wide(self) -> Size:
        """The window of the first and last layers."""
        sides = (self.kernel_size,) * self.d if isinstance(self.kernel_size, int) else self.kernel_size
        return tuple(wide(side, self.d) for side in sides)

    def _options(self, window: int | Size) -> dict[str, Any]:
        """What all layers share: no bias, since norms follow; a window of one sample sees no border."""
        return {"bias": False, "padding_mode": self._border if _sees_around(window) else "zeros"}

    def _linear(self, inputs: int, outputs: int) -> nn.Module:
        return self._make((inputs + 1) * outputs, lambda: PreciseLinear(inputs, outputs))

    def _framed(self, grid: Grid, outputs: int, parameters: int, layer: Callable[[], nn.Module]) -> nn.Module:
        """A correlation, with a bias on the group behind it where the network may break its symmetry."""
        if not self.layers.breaking:
            return self._make(parameters, layer)
        return self._make(parameters + outputs * len(grid), lambda: nn.Sequential(layer(), FrameBias(outputs, grid)))

    def _make(self, parameters: int, layer: Callable[[], nn.Module]) -> nn.Module:
        self.parameters += parameters
        return nn.Identity() if self.dry else layer()


def wide(kernel_size: int, d: int) -> int:
    """The window of the first and last layers: one ring wider than the others, except in 3-D, where it costs most."""
    return kernel_size + 2 if d < 3 else kernel_size


def _sees_around(window: int | Size) -> bool:
    """Whether a window has more samples than one."""
    return window > 1 if isinstance(window, int) else max(window) > 1


class AtLeast(nn.Module):
    """Pad space, equally on both sides, where it is smaller than a window: with zeros, or about a disc."""

    def __init__(self, size: Size, mode: str = "zeros") -> None:
        super().__init__()
        self.size, self.mode = size, mode

    def forward(self, x: Tensor) -> Tensor:
        """Return `(B, C, N_h, *space)` with at least as many samples along each space axis as `size` says."""
        missing = tuple(max(0, (size - n + 1) // 2) for size, n in zip(self.size, x.shape[3:], strict=True))
        if not any(missing):
            return x
        padding = Padding(missing, missing)
        return disc_pad(x, padding) if self.mode == "disc" else F.pad(x, spread(padding))


class DiscMean(nn.Module):
    """The mean over space, weighed by cos²(πr/2R) up to the radius R of the largest disc: (B, C, *space) -> (B, C, 1…).

    A square does not turn onto itself: what lies in its corners comes and goes with the angle, and a mean over it
    changes. A disc does, and its weights fade, so that a coarse map feels little of where its samples lie.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Average the middle of `(B, C, *space)`."""
        space = x.shape[2:]
        weight = torch.cos(math.pi * (radii(space, x.device) / (min(space) + 1)).clamp(max=0.5)) ** 2
        return (x * (weight / weight.sum()).to(x.dtype)).sum(tuple(range(2, x.ndim)), keepdim=True)


@lru_cache(maxsize=32)
@on_cpu
def _twice_as_wide(side: int, d: int) -> SplineBasis:
    """Splines for every second sample, with their centres in a disc."""
    return SplineBasis(disc(side, d), scale=2.0)


@lru_cache(maxsize=256)
def _splines(window: int | Size, grid: Grid) -> int:
    """How many spatial splines a layer has by default."""
    with torch.random.fork_rng(devices=[]):  # a seed gives the same network whether this was counted before or not
        return Lift(1, 1, window, grid).weight.shape[-1]


def finished(network: Pretrained, layers: Layers) -> Pretrained:
    """The network as its user gets it."""
    return guarded(Framed(network) if layers.breaking else network)
