"""The one measure of equivariance: how far outputs differ between copies of an image, over how far between images.

It knows tensors alone, no network and no group. Whatever is constant, a bias above all, takes no part in it; where
outputs are constant altogether it is undefined, which is NaN and never 0.
"""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

ROUNDINGS = 64
"""What differs by less than so many roundings of its size is constant."""


class OutputChange(NamedTuple):
    """How far answers differ between copies of the same images, in units of their spread over the images."""

    mean: float
    """Root mean square over the pairs of copies."""
    worst: float
    """That of the worst pair."""
    pair: tuple[int, int] | None
    """Which pair that is."""


def output_change(outputs: Tensor, *, classes: bool = False, pairs: Tensor | None = None) -> OutputChange:
    """Return by how much answers (K, N, …) to K moved copies of N images change, over all pairs of copies.

    change_ij = √(mean_n ‖z_in − z_jn‖²) / s with the spread s² = mean_kn ‖z_kn − mean_n z_kn‖². With `classes`, z are
    the logits (K, N, C, …) minus their mean over classes, which softmax does not see; else the outputs themselves.
    0 is an invariant network, and √2 one to which two copies of an image are as unlike as two images. `pairs` (K, K)
    says which pairs count, by default all. NaN is undefined: a spread of zero, or no pair.

    All copies should have been interpolated equally often, so none of them be the image itself: beside one that is
    as it was, the others differ by their loss of contrast alone.
    """
    z = outputs.detach().double()
    z = (z - z.mean(2, keepdim=True) if classes and z.shape[2] > 1 else z).flatten(2)
    spread = _square(z - z.mean(1, keepdim=True))
    undefined = constant(spread, outputs)
    chosen = torch.ones(len(z), len(z)) if pairs is None else pairs
    found = {(i, j): _square(z[i] - z[j]) for i, j in combinations(range(len(z)), 2) if chosen[i, j]}
    if not found or undefined:
        return OutputChange(math.nan, math.nan, None)
    worst = max(found, key=found.__getitem__)
    mean = sum(found.values()) / len(found)
    return OutputChange(math.sqrt(mean / spread), math.sqrt(found[worst] / spread), worst)


def changed_predictions(outputs: Tensor) -> float:
    """Return the share of images whose most likely class differs between two copies: logits (K, N, C), all pairs."""
    pairs = [one != other for one, other in combinations(outputs.argmax(2), 2)]
    return float(torch.stack(pairs).double().mean()) if pairs else math.nan


class Compared(NamedTuple):
    """Sums over feature maps beside what they should be."""

    error: float
    """‖actual − expected‖²"""
    spread: float
    """‖expected − its channels' means‖²"""
    values: int
    """Of how many numbers."""


def compared(actual: Tensor, expected: Tensor) -> Compared:
    """Compare feature maps (B, C, …)."""
    actual, expected = actual.detach().double(), expected.detach().double()
    error, spread = (float(one.square().sum()) for one in (actual - expected, expected - levels(expected)))
    return Compared(error, spread, expected.numel())


def relative(parts: Sequence[Compared], every: Sequence[Compared] | None = None) -> float:
    """Return √(mean squared error of the parts / mean squared spread of `every` part); NaN where that is zero."""
    every = parts if every is None else every
    spread = sum(one.spread for one in every) / max(sum(one.values for one in every), 1)
    error = sum(one.error for one in parts) / max(sum(one.values for one in parts), 1)
    return math.sqrt(error / spread) if spread > 0 and parts else math.nan


def levels(maps: Tensor) -> Tensor:
    """The means of the channels of maps (B, C, …) over images, elements and positions."""
    return maps.mean([axis for axis in range(maps.ndim) if axis != 1], keepdim=True)


def constant(spread: float, values: Tensor) -> bool:
    """Whether a mean square spread of values is zero, or no more than their rounding; NaN counts as constant."""
    return not spread > (ROUNDINGS * torch.finfo(values.dtype).eps) ** 2 * _square(values.double())


def _square(values: Tensor) -> float:
    return float(values.square().mean())
