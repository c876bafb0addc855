"""Intervals and paired comparisons of runs, against closed forms, SciPy and draws of whole experiments."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from torch import from_numpy, tensor

from liespline.lab.evaluation.evaluate import pack, unpack
from liespline.lab.symmetry.statistics import holm
from studies import paired
from studies.intervals import Estimate, area_over_images, combined, over_both, over_images, over_seeds
from studies.networks import load
from studies.paired import accuracy, area, balanced_accuracy, compare, contrast


def runs(true, odds, names="abc"):
    """Lines of runs on images of two classes, one row of odds of the second class per seed."""
    lines = []
    for one in odds:
        one = one.astype(np.float16).astype(float)
        right = ((one > 0) == true).mean()
        scores = {"accuracy": right, "auc": roc_auc_score(true, one)}
        scores["balanced_accuracy"] = balanced_accuracy_score(true, one > 0)
        of_true = from_numpy(np.where(true == 1, one, -one))
        kept = pack(list(names), true=tensor(true), predicted=from_numpy((one > 0).astype(int)), log_odds=of_true)
        lines.append({"results": {"scores": scores, "per_image": kept}})
    return lines


def delong(true, one, other):
    """The variance of a difference of two areas (DeLong, DeLong, Clarke-Pearson 1988), by its double loops."""
    parts = []
    for score in (one, other):
        above = score[true == 1][:, None] - score[true == 0][None]
        kernel = (above > 0) + 0.5 * (above == 0)
        parts.append((kernel.mean(1), kernel.mean(0)))
    return sum(np.var(a - b, ddof=1) / len(a) for a, b in zip(*parts, strict=True))


def test_one_seed_has_the_interval_of_delong():
    rng = np.random.default_rng(0)
    true = (rng.random(701) < 0.3).astype(int)
    base = 1.2 * true + rng.normal(size=701)
    ours, other = ((base + rng.normal(scale=s, size=701)).astype(np.float16).astype(float) for s in (0.4, 0.8))
    found = compare(runs(true, [ours]), runs(true, [other]), "AUC")
    half = stats.norm.ppf(0.975) * np.sqrt(delong(true, ours, other))
    assert found.interval.value == pytest.approx(roc_auc_score(true, ours) - roc_auc_score(true, other), abs=1e-3)
    assert (found.interval.high - found.interval.low) / 2 == pytest.approx(half, rel=0.1)


def test_runs_of_the_repository_have_the_intervals_of_delong():
    found = load(Path(__file__).parents[2] / "studies" / "results" / "pcam.jsonl")["pcam_sealed"].networks
    for one, other in (("dense-12-12", "dense-1-1"), ("dense-8-8", "unturned-1-1")):
        lines = [found[name].runs[:1] for name in (one, other)]
        each = [unpack(line["results"]["per_image"]) for (line,) in lines]
        true = each[0]["true"]
        scores = [np.where(true == 1, own["log_odds"], -own["log_odds"]).astype(float) for own in each]
        half = stats.norm.ppf(0.975) * np.sqrt(delong(true, *scores))
        assert compare(*lines, "AUC").interval.half == pytest.approx(half, rel=0.1)


def test_one_network_has_the_interval_of_its_seeds_and_images():
    """Against draws of whole experiments: new seeds and new images."""
    rng = np.random.default_rng(6)

    def drawn(seeds, images):
        shift = rng.normal(scale=0.3, size=(seeds, 1))
        return 0.9 + shift + rng.normal(size=(seeds, images)) + rng.normal(size=images)

    spread = np.std([(drawn(4, 300) > 0).mean() for _ in range(2000)])
    ones = np.ones(300, int)
    ones[:2] = 0  # an area needs two classes
    halves = []
    for _ in range(50):
        odds = np.where(ones, 1, -1) * drawn(4, 300)
        halves.append(contrast([(1, runs(ones, odds))], "accuracy").interval.half)
    assert np.mean(halves) == pytest.approx(1.96 * spread, rel=0.1)


def test_of_deals_of_the_same_digits_the_digits_are_drawn(monkeypatch):
    """Five deals of 200 digits, 160 in each test: the variance is that of clusters, not that of 800 images."""
    rng = np.random.default_rng(7)
    deals = {deal: rng.permutation(200)[:160] for deal in range(1, 6)}
    monkeypatch.setattr(paired.mnist, "rows", lambda split, deal: deals[deal])
    hard, sure = rng.random(200) < 0.15, rng.random(200) < 0.1  # one network errs on these digits, the other on those

    def lines(wrong):
        found = []
        for deal, digits in deals.items():
            (one,) = runs(np.tile([0, 1], 80), [np.where(wrong[digits], -1, 1) * np.tile([-1.0, 1.0], 80)], f"{deal}")
            found.append({**one, "seed": deal - 1, "config": {"task": paired.DEALT}})
        return found

    found = compare(lines(sure), lines(hard), "accuracy").interval
    counts = np.bincount(np.concatenate(list(deals.values())), minlength=200)
    gain = counts * (hard.astype(float) - sure)
    ratio = gain.sum() / counts.sum()
    clusters = np.sqrt(((gain - ratio * counts) ** 2).sum()) / counts.sum()
    assert found.value == pytest.approx(ratio, abs=1e-9)
    assert found.half == pytest.approx(1.96 * clusters, rel=0.2)


def test_scores_with_weights_are_those_of_repeated_images():
    rng = np.random.default_rng(1)
    true, predicted = rng.integers(0, 3, 53), rng.integers(0, 3, 53)
    weights = rng.integers(0, 4, 53)
    repeated = np.repeat(np.arange(53), weights)
    each = {"true": true, "predicted": predicted}
    w = weights[None].astype(float)
    assert accuracy(each, w)[0] == pytest.approx((true == predicted)[repeated].mean())
    expected = balanced_accuracy_score(true[repeated], predicted[repeated])
    assert balanced_accuracy(each, w)[0] == pytest.approx(expected)
    second, score = rng.integers(0, 2, 53), rng.integers(-4, 5, 53).astype(float)  # with equal scores
    each = {"true": second, "log_odds": np.where(second == 1, score, -score)}
    assert area(each, w)[0] == pytest.approx(roc_auc_score(second[repeated], score[repeated]))


def test_rows_of_one_name_with_other_labels_are_other_images():
    rng = np.random.default_rng(4)
    deals = [(rng.permutation(80) < 32).astype(int) for _ in range(3)]
    odds = [[0.9 * (2 * true - 1) + rng.normal(size=80) for true in deals] for _network in range(2)]

    def named(names):
        lines = [
            [run for true, one, name in zip(deals, some, names, strict=True) for run in runs(true, [one], name)]
            for some in odds
        ]
        return compare(*lines, "accuracy")

    assert named("aaa") == named("abc")


@pytest.mark.parametrize("dealt", [False, True])
def test_intervals_cover_both_samplings(dealt):
    """Of 60 experiments without a difference, with seeds and images drawn, about one in twenty says there is one."""
    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(60):
        true = (rng.random(80) < 0.4).astype(int)
        lines = []
        for _network in range(2):
            shift = rng.normal(scale=0.25, size=(6, 1))  # of a seed, on all images
            odds = (0.9 + shift) * (2 * true - 1) + rng.normal(size=(6, 80))
            lines.append([run for i, one in enumerate(odds) for run in runs(true, [one], f"{i}" if dealt else "a")])
        found = compare(*lines, "accuracy")
        missed += not found.interval.low <= 0 <= found.interval.high
    assert missed <= 5, "three are meant; of images alone 16 are missed, of seeds alone 7"


def test_of_deals_those_that_both_have_are_compared():
    rng = np.random.default_rng(8)
    deals = [(rng.permutation(80) < 32).astype(int) for _ in range(3)]
    ours, other = (
        [run for true in deals for run in runs(true, [2 * true - 1 + rng.normal(size=80)])] for _network in range(2)
    )
    assert compare(ours, other[:2], "accuracy") == compare(ours[:2], other[:2], "accuracy")
    assert compare(ours, other[1:], "accuracy") == compare(ours[1:], other[1:], "accuracy")
    assert compare(ours[:1], other[1:], "accuracy") is None


def test_nothing_is_said_without_the_images():
    true = np.array([0, 1] * 20)
    odds = np.random.default_rng(3).normal(size=(2, 40))
    ours, other = runs(true, odds), runs(true, odds[:1], "other")
    assert compare(ours, other, "accuracy") is None, "other images"
    assert compare(ours, [{"results": {"scores": {"accuracy": 0.5}}}], "accuracy") is None
    assert compare(ours, ours, "accuracy, transformed") is None
    other_kind = [{"results": {**run["results"], "scores": {"accuracy": 0.1}}} for run in ours]
    assert compare(ours, other_kind, "accuracy") is None, "another score than that of the images"
    assert compare(ours, ours, "accuracy").interval.value == 0


def test_holm_by_its_definition():
    rng = np.random.default_rng(4)
    for count in (1, 2, 7):
        chances = (rng.random(count) ** 3).tolist()
        order = sorted(range(count), key=chances.__getitem__)
        expected = [0.0] * count
        for place, row in enumerate(order):
            before = expected[order[place - 1]] if place else 0
            expected[row] = min(1, max(before, (count - place) * chances[row]))
        assert holm(chances) == pytest.approx(expected)


def test_seeds_by_welch():
    rng = np.random.default_rng(0)
    for sizes in ((2, 2), (3, 3), (5, 2), (10, 3)):
        a, b = (rng.normal(size=size, scale=scale).tolist() for size, scale in zip(sizes, (1.0, 4.0), strict=True))
        interval = combined([(1, over_seeds(a)), (-1, over_seeds(b))])
        expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
        assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_seeds_on_the_same_images_by_draws_of_both():
    """Means of four seeds on 500 images that all share: the interval holds the truth as often as it says."""
    rng, inside = np.random.default_rng(5), 0
    for _ in range(1000):
        easy = rng.normal(size=500)  # of the images
        scores = [(0.9 + rng.normal(scale=0.15) + easy > 0).mean() for _seed in range(4)]
        estimate = over_both(over_seeds(scores), over_images(float(np.mean(scores)), 500))
        interval = combined([(1, estimate)])
        inside += interval.low <= stats.norm.cdf(0.9 / np.sqrt(1 + 0.15**2)) <= interval.high
    assert 920 <= inside <= 985


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
