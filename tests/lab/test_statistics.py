"""What stands behind an accuracy: sensitivity, majority, intervals; and what picks the best epoch."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from liespline.lab.evaluation.evaluate import area_interval, area_variance, mean_of_shares, wilson
from liespline.lab.networks import Signature
from liespline.lab.tasks import find_task
from liespline.lab.tasks.objectives import Classification

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("m", "n", "apart"), [(80, 50, 1.5), (10, 90, 0.5), (10, 90, 3.0), (5, 5, 3.0), (5, 5, 0.5)])
def test_areas_lie_in_95_of_100_intervals(m, n, apart):
    """Normal classes, also where most areas are 1, and a bootstrap has no width."""
    rng, truth = np.random.default_rng(0), stats.norm.cdf(apart / math.sqrt(2))
    found = []
    for _ in range(1500):
        above = rng.normal(apart, size=(m, 1)) > rng.normal(size=n)
        found.append(area_interval(float(above.mean()), n, m))
    low, high = np.array(found).T
    assert 0.93 < np.mean((low <= truth) & (truth <= high)) < 0.985


def test_an_interval_of_areas_ends_where_they_are_doubtful():
    for value, m, n in ((0.8, 30, 50), (1.0, 10, 10), (0.0, 4, 9)):
        low, high = area_interval(value, m, n)
        assert 0 <= low <= value <= high <= 1
        for end in (low, high):
            half = 1.959964 * math.sqrt(area_variance(end, m, n))
            assert abs(end - value) == pytest.approx(half, abs=1e-6)
    assert area_interval(1.0, 10, 10)[0] == pytest.approx(0.8002136, abs=1e-6), "by another root finder"


def test_means_of_shares_lie_in_95_of_100_intervals():
    truth, totals = np.array([0.5, 0.9, 0.8]), np.array([40, 12, 25])
    right = np.random.default_rng(0).binomial(totals, truth, (1500, 3))
    found = np.array([mean_of_shares(list(zip(row.tolist(), totals.tolist(), strict=True))) for row in right])
    share = np.mean((found[:, 0] <= truth.mean()) & (truth.mean() <= found[:, 1]))
    assert 0.935 < share < 0.975
    half = 1.96 * math.sqrt(sum(truth * (1 - truth) / totals)) / 3
    assert np.mean(found[:, 1] - found[:, 0]) == pytest.approx(2 * half, rel=0.1), "the normal one"
    assert mean_of_shares([(7, 20)]) == pytest.approx(wilson(7, 20))
    low, high = mean_of_shares([(20, 20), (0, 5)])
    assert low < 0.45 < 0.55 < high, "sure answers have a width"


def counted(*counts):
    return torch.cat([torch.full((count,), label) for label, count in enumerate(counts)])


def test_uneven_classes_pick_another_score():
    for counts, monitor in (
        ((50, 50), "accuracy"), ((70, 50), "accuracy"), ((80, 50), "auc"), ((10, 90), "auc"),
        ((40, 40, 45), "accuracy"), ((40, 40, 90), "balanced_accuracy"),
    ):  # fmt: skip
        objective = Classification([str(i) for i in range(len(counts))])
        objective.look_at(counted(*counts))
        assert objective.monitor == monitor, counts


def test_weighted_classes_count_the_same():
    targets = counted(90, 10)
    outputs = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    by_class = [torch.nn.functional.cross_entropy(outputs[targets == k], targets[targets == k]) for k in (0, 1)]
    task = find_task("images")
    config = task.defaults.updated(class_weights=True)
    objective = task.objective(config, Signature(1, (9, 9), ("a", "b"))).train()
    objective.look_at(targets)
    assert float(objective.loss(outputs, targets)) == pytest.approx(float(sum(by_class) / 2))
    halves = [objective.loss(outputs[i::2], targets[i::2]) for i in (0, 1)]
    assert float(sum(halves) / 2) == pytest.approx(float(objective.loss(outputs, targets))), "two processes as one"
    plain = float(torch.nn.functional.cross_entropy(outputs, targets))
    assert float(objective.eval().loss(outputs, targets)) == pytest.approx(plain), "what is reported is not weighted"
