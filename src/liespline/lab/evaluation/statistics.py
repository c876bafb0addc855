"""How sure the scores of a classifier are, and what stands behind its accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import binomtest, bootstrap
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc

LEVEL = 0.95
Z = 1.959964  # two-sided
DRAWS = 1000
METHOD = (
    "95 %; accuracy and sensitivity after Wilson, balanced accuracy from those of its classes, AUC after Newcombe, "
    "landmarks that were found by 1,000 bootstrap samples of the images"
)


def behind_accuracy(table: Sequence[Sequence[int]], classes: Sequence[str]) -> dict[str, Any]:
    """Sensitivity of each class (its recall), and the accuracy of a constant prediction, the most frequent class.

    `table` counts true classes down and predictions across. Classes without any image are left out.
    """
    counts = [sum(row) for row in table]
    present = [i for i, count in enumerate(counts) if count]
    return {
        "majority_class_accuracy": max(counts) / sum(counts),
        "sensitivity": {classes[i]: table[i][i] / counts[i] for i in present},
        "sensitivity_interval": {classes[i]: wilson(table[i][i], counts[i]) for i in present},
    }


def wilson(right: int, total: int) -> list[float]:
    """Wilson's interval for a share of `right` among `total`: all p with |right/total − p| ≤ z √(p(1 − p)/total)."""
    found = binomtest(right, total).proportion_ci(LEVEL, "wilson")
    return [float(found.low), float(found.high)]


def mean_of_shares(counts: Sequence[tuple[int, int]]) -> list[float]:
    """The interval of the mean of K shares p_k, `right` among `total` each, from Wilson's [l_k, u_k] of each share.

    p̄ − √Σ(p_k − l_k)² / K and p̄ + √Σ(u_k − p_k)² / K (Zou and Donner 2008). It has a width even where all shares are
    0 or 1; a bootstrap has none there.
    """
    shares, limits = [right / total for right, total in counts], [wilson(*count) for count in counts]
    mean = sum(shares) / len(shares)
    below, above = (
        math.hypot(*(limit[side] - share for share, limit in zip(shares, limits, strict=True))) / len(shares)
        for side in (0, 1)
    )
    return [mean - below, mean + above]


def intervals(outputs: Tensor, targets: Tensor) -> dict[str, list[float]]:
    """Intervals of accuracy, balanced accuracy and, for two classes, AUC, of outputs (N, classes)."""
    hits = outputs.argmax(-1) == targets
    limits = {"accuracy": wilson(int(hits.sum()), len(hits))}
    of_classes = [hits[targets == label] for label in targets.unique()]
    limits["balanced_accuracy"] = mean_of_shares([(int(own.sum()), len(own)) for own in of_classes])
    if outputs.shape[-1] == 2 and 0 < int(targets.sum()) < len(targets):
        area, second = float(binary_auroc(outputs.double().softmax(-1)[:, 1], targets)), int(targets.sum())
        limits["auc"] = area_interval(area, second, len(targets) - second)
    return limits


def area_variance(area: float, m: float, n: float) -> float:
    """How far areas A of other images scatter, m of one class and n of the other (Newcombe 2006, his fifth method).

    A(1 − A)(1 + ((m + n)/2 − 1)((1 − A)/(2 − A) + A/(1 + A))) / mn: the rule of Hanley and McNeil, averaged over which
    class comes first.
    """
    return area * (1 - area) * (1 + ((m + n) / 2 - 1) * ((1 - area) / (2 - area) + area / (1 + area))) / (m * n)


def area_interval(area: float, m: int, n: int) -> list[float]:
    """All A' from which the area is less than z √variance(A') away: as Wilson's, with a width even at 0 and 1."""

    def beyond(end: float) -> float:
        return (end - area) ** 2 - Z**2 * area_variance(end, m, n)

    inside = min(max(area, 1e-12), 1 - 1e-12)  # at 0 and 1 the variance is 0
    return [brentq(beyond, 0.0, inside), brentq(beyond, inside, 1.0)]


def success_interval(hits: Tensor) -> list[float]:
    """The middle 95 % of success rates of images drawn with replacement, always the same draws.

    `hits` (N, L) says which landmarks were found; those of one image go together.
    """
    rates = hits.double().mean(-1).numpy()
    if len(rates) == 1:  # nothing else can be drawn
        return [float(rates[0])] * 2
    at_once = max(1, 4_000_000 // len(rates))
    draws = bootstrap((rates,), np.mean, n_resamples=DRAWS, batch=at_once, method="percentile", rng=0)
    return [float(draws.confidence_interval.low), float(draws.confidence_interval.high)]
