"""Two networks scored on the same images: a bootstrap over seeds and images at once, and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from liespline.lab.evaluation.evaluate import NAMES as IMAGES
from liespline.lab.evaluation.evaluate import unpack
from studies.intervals import LEVEL, Interval

Line = Mapping[str, Any]
Each = Mapping[str, NDArray[Any]]
Floats = NDArray[np.float64]
DRAWS, AT_ONCE = 2000, 100
ROUNDED = 1e-3
"""How far a score may be from what the kept numbers say, which have three digits."""


class Paired(NamedTuple):
    """A difference of means with its interval, and the chance of one so far from zero where there is none."""

    interval: Interval
    p: float


def accuracy(each: Each, weights: Floats) -> Floats:
    """The share of right answers, for rows of weights (draws, images)."""
    return weights @ (each["true"] == each["predicted"]) / weights.sum(1)


def balanced_accuracy(each: Each, weights: Floats) -> Floats:
    """The mean share over the classes that occur."""
    right = each["true"] == each["predicted"]
    of_class = [each["true"] == one for one in np.unique(each["true"])]
    return np.mean([weights @ (right & own) / np.maximum(weights @ own, 1e-12) for own in of_class], axis=0)


def area(each: Each, weights: Floats) -> Floats:
    """The area under the ROC curve of two classes; equal scores count half."""
    second = each["true"] == 1
    score = np.where(second, each["log_odds"], -each["log_odds"])
    order = np.argsort(score, kind="stable")
    starts = np.flatnonzero(np.diff(score[order], prepend=-np.inf))
    with_second = np.add.reduceat(weights[:, order] * second[order], starts, axis=1)
    with_first = np.add.reduceat(weights[:, order] * ~second[order], starts, axis=1)
    below = np.cumsum(with_first, axis=1) - with_first / 2
    return (with_second * below).sum(1) / np.maximum(with_second.sum(1) * with_first.sum(1), 1e-12)


def dice(each: Each, weights: Floats) -> Floats:
    """The mean Dice of images."""
    return weights @ each["dice"] / weights.sum(1)


STATISTICS: dict[str, tuple[str, Callable[[Each, Floats], Floats]]] = {
    "accuracy": ("accuracy", accuracy),
    "balanced accuracy": ("balanced_accuracy", balanced_accuracy),
    "AUC": ("auc", area),
    "Dice per image": ("dice_per_image", dice),
}
"""By measure: the name of its score in results, and how it comes from the images."""


def compare(ours: Sequence[Line], others: Sequence[Line], measure: str) -> Paired | None:
    """How far the first network is ahead, from the runs of both; None where no score of every image was kept.

    Both samplings are drawn again: images, the same ones for all runs, and the seeds of each network. Where each seed
    has images of its own, a deal, the seeds are drawn for both networks together, and images within each seed. A mean
    of n drawn seeds varies too little by the factor (n − 1)/n, which is undone.
    """
    runs = [line["results"] for line in (*ours, *others)]
    if measure not in STATISTICS or not all("per_image" in run for run in runs):
        return None
    key, statistic = STATISTICS[measure]
    each = [unpack(run["per_image"]) for run in runs]
    # Rows of a file have the same names in every deal, but not the same labels.
    images = [
        (run["per_image"][IMAGES], one["true"].tobytes() if "true" in one else b"")
        for run, one in zip(runs, each, strict=True)
    ]
    crossed, count = len(set(images)) == 1, len(ours)
    if not crossed and images[:count] != images[count:]:
        return None
    size = len(next(iter(each[0].values())))
    whole = np.array([statistic(one, np.ones((1, size)))[0] for one in each])
    if not np.allclose(whole, [run["scores"][key] for run in runs], atol=ROUNDED):
        return None  # a score of another kind, such as a Dice of all voxels together
    draw = np.random.default_rng(0)
    drawn = np.concatenate([_drawn(draw, each, statistic, size, crossed) for _ in range(DRAWS // AT_ONCE)])
    seeds = draw.integers(0, count, (DRAWS, count))
    again = draw.integers(0, len(others), (DRAWS, len(others))) if crossed else seeds
    gaps = _mean_of(drawn[:, :count], seeds) - _mean_of(drawn[:, count:], again)
    value = float(whole[:count].mean() - whole[count:].mean())
    low, high = np.quantile(gaps, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    beyond = min(int((gaps <= 0).sum()), int((gaps >= 0).sum())) + 1
    return Paired(Interval(value, float(low), float(high)), min(1.0, 2 * beyond / (DRAWS + 1)))


def _drawn(
    draw: np.random.Generator, each: Sequence[Each], statistic: Callable[[Each, Floats], Floats], size: int,
    crossed: bool,
) -> Floats:  # fmt: skip
    """The scores of all runs on images that are drawn again: (draws, runs)."""
    even = np.full(size, 1 / size)
    deals = 1 if crossed else len(each) // 2
    weights = [draw.multinomial(size, even, AT_ONCE).astype(np.float64) for _ in range(deals)]
    return np.stack([statistic(one, weights[i % deals]) for i, one in enumerate(each)], axis=1)


def _mean_of(scores: Floats, seeds: NDArray[np.int64]) -> Floats:
    """The mean of the drawn seeds, its deviation from that of all seeds made as large as it should be."""
    mean, count = scores.mean(1), scores.shape[1]
    factor = math.sqrt(count / (count - 1)) if count > 1 else 1.0
    return mean + factor * (np.take_along_axis(scores, seeds, 1).mean(1) - mean)
