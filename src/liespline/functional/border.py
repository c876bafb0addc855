"""What lies beyond the border of an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from .._check import Size

RIM = 2
"""How many samples wide the rim of a disc is."""


class Padding(NamedTuple):
    """How far each space axis is padded before its first and after its last sample."""

    before: Size
    after: Size


def disc_pad(x: Tensor, padding: Padding) -> Tensor:
    """Return x `(…, *space)` padded, with the mean of the disc's rim everywhere outside of the largest disc in space.

    A correlation with what lies in a window commutes with a turn if the continuation beyond the border does. Zeros
    beyond a square do not: they are an edge, which every layer carries further in. This one does, and a constant stays
    constant. Each map has its own mean; the disc's edge is one sample wide.
    """
    d = len(padding.before)
    exact = torch.promote_types(x.dtype, torch.float32)
    inside, rim = _disc(x.shape[x.ndim - d :], x.device, exact)
    axes = tuple(range(x.ndim - d, x.ndim))
    mean = ((x.to(exact) * rim).sum(axes, keepdim=True) / rim.sum()).to(x.dtype)
    sides = spread(padding)
    # Not (x - mean) * inside + mean: inside of the disc, x goes through to the bit.
    return F.pad(x * inside.to(x.dtype), sides) + mean * (1 - F.pad(inside, sides)).to(x.dtype)


def _disc(space: Sequence[int], device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return how far each sample lies in the largest disc, and the same for its rim alone, from 0 to 1: `(*space)`."""
    nearest = math.sqrt(sum(size % 2 == 0 for size in space)) / 2  # it reaches these: sides of 1 and 2 have none nearer
    depth = max(min(space) / 2, nearest + 0.5) - radii(space, device, dtype)
    inside = depth.clamp(0, 1)
    return inside, inside * (depth < RIM + 0.5)


def radii(space: Sequence[int], device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return how far each sample lies from the centre: `(*space)`."""
    square = torch.zeros((), device=device, dtype=dtype)
    for axis, size in enumerate(space):
        places = torch.arange(size, device=device, dtype=dtype) - (size - 1) / 2
        square = square + places.view(-1, *(1,) * (len(space) - 1 - axis)) ** 2
    return square.sqrt()


def spread(padding: Padding) -> list[int]:
    """Return the padding as `F.pad` takes it: last axis first."""
    return [p for pair in zip(reversed(padding.before), reversed(padding.after), strict=True) for p in pair]


def check_room(space: Sequence[int], padding: Padding, mode: str) -> None:
    """Raise ValueError where an image is too small to be reflected or repeated so far."""
    if mode == "replicate" or torch.compiler.is_compiling():
        return
    for axis, (size, *borders) in enumerate(zip(space, *padding, strict=True)):
        most = size - 1 if mode == "reflect" else size
        if max(borders) > most:
            raise ValueError(
                f'padding_mode = "{mode}" cannot add {max(borders)} samples to the {size} of space axis {axis}, '
                f"at most {most}: windows grow with the elements of a scaling group; "
                'take larger images, fewer scales, or "zeros" or "replicate"'
            )
