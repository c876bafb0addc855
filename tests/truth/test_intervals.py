"""Intervals know what is one observation and what is the same one again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import bootstrap

from liespline.lab.evaluation.evaluate import success_interval


@pytest.mark.parametrize("copies", [2, 5])
def test_equal_landmark_columns_add_no_certainty(copies):
    hits = torch.rand(60, 1, generator=torch.Generator().manual_seed(0)) < 0.7
    assert success_interval(hits.expand(-1, copies)) == pytest.approx(success_interval(hits))


def test_landmarks_of_one_image_go_together():
    """As SciPy's bootstrap over images, of landmarks that mostly hit or miss together."""
    draw = np.random.default_rng(0)
    whole = draw.random((120, 1)) < 0.6
    hits = np.where(draw.random((120, 3)) < 0.85, whole, draw.random((120, 3)) < 0.5)
    rates = hits.mean(1)
    limits = bootstrap((rates,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    assert success_interval(torch.from_numpy(hits)) == pytest.approx([limits.low, limits.high], abs=0.01)


def test_the_interval_of_a_run_is_over_its_images(points):
    rates = points.hits(points.split("test")).mean(1)
    limits = bootstrap((rates,), np.mean, method="percentile", n_resamples=20_000, rng=1).confidence_interval
    step = 1 / rates.size / 2  # means of so few images lie on a lattice
    assert points.results()["interval"]["success"] == pytest.approx([limits.low, limits.high], abs=step)
