"""Intensities varied at random, by nnU-Net's probabilities and ranges.

Every change is the same at all samples and in all directions, so that it commutes with rotations and reflections.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .augment import Draws

WORDS = ("noise", "blur", "brightness", "contrast", "gamma")
RADIUS = 4
"""Samples to either side that are blurred over: four deviations of the widest blur."""


def varied(images: Tensor, words: Collection[str], draws: Draws) -> Tensor:
    """Some of the images (B, C, *space), each of their channels by a strength of its own."""
    steps: tuple[tuple[str, float, Callable[[Tensor, Tensor], Tensor]], ...] = (
        ("noise", 0.1, lambda x, u: noisy(x, 0.1 * u, draws.normal(x, x[0].numel()).T.reshape(x.shape))),
        ("blur", 0.2, lambda x, u: blurred(x, 0.5 + 0.5 * u)),
        ("brightness", 0.15, lambda x, u: x * (0.75 + 0.5 * u)),
        ("contrast", 0.15, lambda x, u: contrasted(x, 0.75 + 0.5 * u)),
        # Exponents from 0.7 to 1.5, half of them below 1; first of the negative, from white instead of from black.
        ("gamma", 0.1, lambda x, u: -to_power(-x, torch.maximum(0.7 + 0.6 * u, 0.5 + u))),
        ("gamma", 0.3, lambda x, u: to_power(x, torch.maximum(0.7 + 0.6 * u, 0.5 + u))),
    )
    ones = (1,) * (images.ndim - 2)
    for word, share, change in steps:
        if word in words:
            coin, *strength = draws.uniform(images, 1 + images.shape[1])
            changed = change(images, torch.stack(strength, 1).view(*images.shape[:2], *ones).to(images))
            images = torch.where((coin < share).view(-1, 1, *ones), changed, images)
    return images


def noisy(x: Tensor, variance: Tensor, normal: Tensor) -> Tensor:
    """With Gaussian noise of this variance, in units of that of each channel."""
    return x + (variance * x.var(_space(x), correction=0, keepdim=True)).sqrt() * normal


def blurred(x: Tensor, deviation: Tensor) -> Tensor:
    """Convolved with Gaussians of these deviations in samples, continued by the edge."""
    steps = torch.arange(-RADIUS, RADIUS + 1, device=x.device)
    weights = torch.exp(-((steps / deviation.unsqueeze(-1)) ** 2) / 2)
    weights = weights / weights.sum(-1, keepdim=True)  # (B, C, 1, …, steps)
    for axis in _space(x):
        last = x.shape[axis] - 1
        places = torch.arange(last + 1, device=x.device)
        parts = [
            weight * x.index_select(axis, (places + step).clamp(0, last))
            for step, weight in zip(steps, weights.unbind(-1), strict=True)
        ]
        x = functools.reduce(torch.add, parts)
    return x


def contrasted(x: Tensor, factor: Tensor) -> Tensor:
    """f̄ + c (f − f̄), cut to the range of each channel."""
    mean = x.mean(_space(x), keepdim=True)
    return (mean + factor * (x - mean)).clamp(x.amin(_space(x), keepdim=True), x.amax(_space(x), keepdim=True))


def to_power(x: Tensor, exponent: Tensor) -> Tensor:
    """Each channel's range, brought to [0, 1], to this power; then with the mean and the deviation that it had."""
    low, high = x.amin(_space(x), keepdim=True), x.amax(_space(x), keepdim=True)
    tiny = torch.finfo(x.dtype).tiny
    power = ((x - low) / (high - low).clamp_min(tiny)) ** exponent
    (mean, deviation), (own, spread) = (
        (y.mean(_space(x), keepdim=True), y.std(_space(x), correction=0, keepdim=True)) for y in (x, power)
    )
    return mean + (power - own) * (deviation / spread.clamp_min(tiny))


def _space(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))
