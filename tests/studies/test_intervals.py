"""Intervals against SciPy and against thousands of drawn samples."""

import math

import numpy as np
import pytest
from scipy import stats

from studies.intervals import Estimate, area_over_images, combined, over_images, over_seeds


def test_seeds_by_welch():
    rng = np.random.default_rng(0)
    for sizes in ((2, 2), (3, 3), (5, 2), (10, 3)):
        a, b = (rng.normal(size=size, scale=scale).tolist() for size, scale in zip(sizes, (1.0, 4.0), strict=True))
        interval = combined([(1, over_seeds(a)), (-1, over_seeds(b))])
        expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_images_by_the_binomial():
    estimate = over_images(0.83, 3000)
    error = math.sqrt(estimate.variance)
    assert error == pytest.approx(stats.binom(3000, 0.83).std() / 3000)
    assert combined([(1, estimate)]).high - 0.83 == pytest.approx(1.959964 * error, rel=1e-6)
    assert over_images(1.0, 10).variance > 0


@pytest.mark.parametrize("second", [0.5, 0.11])
def test_areas_by_drawn_samples(second):
    """Two normal classes a deviation and a half apart: the spread of 2,000 drawn areas, within a tenth."""
    rng = np.random.default_rng(1)
    images, areas = 400, []
    m = round(second * images)
    for _ in range(2000):
        low, high = rng.normal(size=images - m), rng.normal(1.5, size=m)
        areas.append(stats.mannwhitneyu(high, low).statistic / (m * (images - m)))
    variance = area_over_images(float(np.mean(areas)), images, second).variance
    assert math.sqrt(variance) == pytest.approx(np.std(areas), rel=0.1)


def test_one_seed_beside_several():
    """What is known without doubt adds no doubt of its own about its variance."""
    several, one = over_seeds([0.8, 0.82, 0.81]), Estimate(0.7, 1e-12, math.inf)
    interval = combined([(1, several), (-1, one)])
    half = stats.t.ppf(0.975, 2) * math.sqrt(several.variance)
    assert interval.high - interval.value == pytest.approx(half, rel=1e-3)
