"""How sure the scores of a classifier are, and what stands behind its accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

Z = 1.959964  # two-sided 95 %
DRAWS = 1000
METHOD = (
    "95 %; accuracy and sensitivity after Wilson, balanced accuracy from those of its classes, the others by 1,000 "
    "bootstrap samples of the images"
)


def behind_accuracy(table: Sequence[Sequence[int]], classes: Sequence[str]) -> dict[str, Any]:
    """Sensitivity of each class (its recall), and the accuracy of always answering the most frequent class.

    `table` counts true classes down and answers across. Classes without any image are left out.
    """
    counts = [sum(row) for row in table]
    present = [i for i, count in enumerate(counts) if count]
    return {
        "majority": max(counts) / sum(counts),
        "sensitivity": {classes[i]: table[i][i] / counts[i] for i in present},
        "sensitivity_interval": {classes[i]: wilson(table[i][i], counts[i]) for i in present},
    }


def wilson(right: int, total: int) -> list[float]:
    """Wilson's interval for a share of `right` among `total`.

    (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n)
    """
    share, z2 = right / total, Z * Z
    middle = share + z2 / (2 * total)
    half = Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total * total))
    return [max(0.0, (middle - half) / (1 + z2 / total)), min(1.0, (middle + half) / (1 + z2 / total))]


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
        ranks = outputs.double().softmax(-1)[:, 1].unique(return_inverse=True)[1]
        limits["auc"] = bootstrap(lambda times: area(times, ranks, targets), len(targets))
    return limits


def success_interval(hits: Tensor) -> list[float]:
    """The interval of the success rate, from which landmarks were found, (N, L): those of one image go together."""
    shares = hits.double().mean(-1)
    return bootstrap(lambda times: (times @ shares) / times.sum(-1), len(shares))


def area(times: Tensor, ranks: Tensor, targets: Tensor) -> Tensor:
    """The area under the ROC curve where image i counts `times[:, i]` times: P(positive ranks above negative)."""
    levels = int(ranks.max()) + 1
    ahead, behind = (
        times.new_zeros(len(times), levels).index_add_(1, ranks, times * (targets == label)) for label in (1, 0)
    )
    lower = behind.cumsum(-1) - behind
    return (ahead * (lower + behind / 2)).sum(-1) / (ahead.sum(-1) * behind.sum(-1))


def bootstrap(value: Any, count: int) -> list[float]:
    """The middle 95 % of a value over images drawn with replacement, always the same draws.

    `value` takes how often each image was drawn, (draws, count), and answers (draws,).
    """
    generator = torch.Generator().manual_seed(0)
    values = []
    step = max(1, 4_000_000 // count)
    for start in range(0, DRAWS, step):
        rows = torch.randint(count, (min(step, DRAWS - start), count), generator=generator)
        times = torch.zeros(rows.shape, dtype=torch.float64).scatter_add_(1, rows, torch.ones(rows.shape).double())
        values.append(value(times))
    drawn = torch.cat(values)
    drawn = drawn[drawn.isfinite()]
    return [float(drawn.quantile(q)) for q in (0.025, 0.975)]
