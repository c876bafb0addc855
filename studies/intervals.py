"""How sure mean scores and their differences are where no score of every image was kept: seeds and images together."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.stats import t as student

from liespline.lab.evaluation.evaluate import area_variance

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean score, the variance of that mean, and its degrees of freedom."""

    mean: float
    variance: float
    freedom: float


@dataclass(frozen=True)
class Interval:
    """A difference of means with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def half(self) -> float:
        """What stands behind a ±."""
        return (self.high - self.low) / 2


def over_seeds(values: Sequence[float]) -> Estimate:
    """The mean of n ≥ 2 seeds: variance s²/n, n − 1 degrees of freedom."""
    return Estimate(statistics.fmean(values), statistics.variance(values) / len(values), len(values) - 1)


def over_images(share: float, images: int) -> Estimate:
    """A share p of n images: variance p(1 − p)/n. Other images are considered, another seed is not."""
    inner = _inner(share, images)
    return Estimate(share, inner * (1 - inner) / images, math.inf)


def area_over_images(area: float, images: int, second: float = 0.5) -> Estimate:
    """An area under the ROC curve of so many images of two classes, this share of them in the second."""
    return Estimate(area, area_variance(_inner(area, images), second * images, (1 - second) * images), math.inf)


def over_both(seeds: Estimate, images: Estimate) -> Estimate:
    """A mean of seeds that were tested on the same images: both variances, and the degrees of freedom of their sum."""
    variance = seeds.variance + images.variance
    freedom = seeds.freedom * (variance / seeds.variance) ** 2 if seeds.variance > 0 else images.freedom
    return Estimate(seeds.mean, variance, freedom)


def combined(terms: Iterable[tuple[float, Estimate]]) -> Interval:
    """The 95 % interval of Σ cᵢmᵢ: variance Σ cᵢ²vᵢ, degrees of freedom (Σ cᵢ²vᵢ)² / Σ (cᵢ²vᵢ)²/νᵢ (Welch)."""
    terms = list(terms)
    value = sum(c * estimate.mean for c, estimate in terms)
    parts = [(c**2 * estimate.variance, estimate.freedom) for c, estimate in terms]
    variance = sum(part for part, _ in parts)
    doubt = sum(part**2 / freedom for part, freedom in parts)
    half = float(student.ppf((1 + LEVEL) / 2, variance**2 / doubt if doubt > 0 else math.inf)) * math.sqrt(variance)
    return Interval(value, value - half, value + half)


def _inner(share: float, images: int) -> float:
    """None wrong of n images does not mean that none ever will be."""
    return min(max(share, 0.5 / images), 1 - 0.5 / images)
