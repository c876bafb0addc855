"""A network over an image in overlapping tiles: the same output as in one piece, in the memory of one tile."""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

CLOSE = 2e-5


class Span(NamedTuple):
    """A tile along one axis: what is read, and the part of it that is kept."""

    read: tuple[int, int]
    keep: tuple[int, int]

    @property
    def inner(self) -> slice:
        """The kept part, counted from the first sample read."""
        return slice(self.keep[0] - self.read[0], self.keep[1] - self.read[0])

    @property
    def outer(self) -> slice:
        """The kept part in the whole image."""
        return slice(*self.keep)


@dataclass(frozen=True)
class Tiling:
    """How an image is cut: tiles of `side` samples, of which the outer `halo` only inform the rest.

    A network that halves its input needs sides that are multiples of 2^halvings, here `multiple`: tiles then begin
    where the samples of its coarse layers lie. Images of other sides are first continued by their edge.
    """

    side: int
    halo: int
    multiple: int = 1

    def __post_init__(self) -> None:
        if self.core < 1:
            raise ValueError(
                f"tiles of {self.side} samples have nothing left inside a halo of {self.halo}; "
                f"take at least {2 * self._whole(self.halo) + self.multiple}"
            )

    @property
    def core(self) -> int:
        """The samples kept of a tile, along one axis."""
        return (self.side - 2 * self._whole(self.halo)) // self.multiple * self.multiple

    def _whole(self, size: int) -> int:
        return -(-size // self.multiple) * self.multiple

    def margins(self, size: int) -> tuple[int, int]:
        """By how much an axis is continued before and after, so that its length is a multiple."""
        more = self._whole(size) - size
        return more // 2, more - more // 2

    def spans(self, size: int) -> list[Span]:
        """The tiles along an axis whose length is a multiple already."""
        if size <= self.side:
            return [Span((0, size), (0, size))]
        halo = self._whole(self.halo)
        starts = range(0, size, self.core)
        return [
            Span((max(0, start - halo), min(size, start + self.core + halo)), (start, min(size, start + self.core)))
            for start in starts
        ]


@torch.no_grad()
def in_tiles(network: Callable[[Tensor], Tensor], images: Tensor, tiling: Tiling) -> Tensor:
    """The network's maps (B, K, *space) of images (B, C, *space) that may be of any size."""
    space = images.shape[2:]
    margins = [tiling.margins(size) for size in space]
    wide = continued(images, margins)
    out: Tensor | None = None
    for spans in itertools.product(*(tiling.spans(size) for size in wide.shape[2:])):
        tile = wide[_window(slice(*span.read) for span in spans)]
        maps = network(tile)[_window(span.inner for span in spans)]
        if out is None:
            out = maps.new_empty(*maps.shape[:2], *wide.shape[2:])
        out[_window(span.outer for span in spans)] = maps
    assert out is not None  # an image has at least one tile
    return out[_window(slice(before, before + size) for (before, _), size in zip(margins, space, strict=True))]


def _window(slices: Iterable[slice]) -> tuple[Any, ...]:
    return (..., *slices)


def continued(images: Tensor, margins: list[tuple[int, int]]) -> Tensor:
    """Images (B, C, *space) continued by their edge on both sides of each axis."""
    if not any(map(any, margins)):
        return images
    around = [amount for pair in reversed(margins) for amount in pair]
    return nn.functional.pad(images, around, mode="replicate")


@torch.no_grad()
def halo_of(network: nn.Module, channels: int, space_dim: int, multiple: int, most: int) -> int | None:
    """How far into an image a network's output feels its border, in samples: what a tile needs around its core.

    Measured, so that it holds for any network: the output for noise is compared with that for a part of it,
    and the halo is the distance from the cut beyond which they agree to 2e-5 of the largest output. None if they
    nowhere do within `most` samples, as for a network that averages over the whole image.
    """
    parameter = next(network.parameters())
    draw = torch.Generator().manual_seed(0)
    most = -(-most // multiple) * multiple
    size = (4 * most, *(2 * most,) * (space_dim - 1)) if space_dim > 1 else (4 * most,)
    noise = torch.rand(1, channels, *size, generator=draw).to(parameter)
    whole, part = network(noise), network(noise[:, :, : 2 * most])
    apart = (whole[:, :, : 2 * most] - part).abs().transpose(1, 2).flatten(2).amax((0, 2))  # by row
    felt = torch.nonzero(apart > CLOSE * whole.abs().max())
    halo = 0 if not len(felt) else 2 * most - int(felt.min())
    return halo if halo <= most else None
