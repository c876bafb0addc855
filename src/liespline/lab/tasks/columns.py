"""Scores of every class, tag or number, and their means over those that have one."""

from collections.abc import Callable

import torch
from scipy.stats import rankdata
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

Score = Callable[[Tensor, Tensor], Tensor]
"""Outputs (N, …) and targets (N, …) to the scores of each column (K,), NaN where one is undefined."""


def areas(output: Tensor, target: Tensor) -> Tensor:
    """Areas under the ROC curves of columns (N, K), targets 0 or 1: undefined for a column of one value.

    A = (Σ r_i − m(m + 1)/2) / (m n) with the ranks r_i of the m positives among n negatives, ties sharing theirs.
    """
    ranks, truth = torch.from_numpy(rankdata(output.numpy(), axis=0)), target.bool()
    m, n = truth.sum(0), (~truth).sum(0)
    return ((ranks * truth).sum(0) - m * (m + 1) / 2) / (m * n)


def areas_of_classes(output: Tensor, target: Tensor) -> Tensor:
    """Of each class against all others: logits (N, K), class numbers (N,)."""
    return areas(output.double().log_softmax(-1), torch.nn.functional.one_hot(target.long(), output.shape[-1]))


def f1s(output: Tensor, target: Tensor) -> Tensor:
    """F1 of logits (N, K) at ½: undefined for a column that is neither there nor predicted."""
    predicted, true = output > 0, target.bool()
    return 2 * (predicted & true).sum(0) / (predicted.sum(0) + true.sum(0)).double()


def r2s(output: Tensor, target: Tensor) -> Tensor:
    """R², the share of the variance that is explained, of columns (N, K): undefined for a column of one value."""
    target = target.double()
    variance = (target - target.mean(0)).square().sum(0)
    unexplained = (target - output.double()).square().sum(0)
    return torch.where(variance > 0, 1 - unexplained / variance, torch.nan)


def absolute_errors(output: Tensor, target: Tensor) -> Tensor:
    """The mean absolute errors of columns (N, K)."""
    return (target.double() - output.double()).abs().mean(0)


def constant(target: Tensor) -> list[int]:
    """The columns (N, K) that have one value only."""
    return (target == target[:1]).all(0).nonzero()[:, 0].tolist()


class MeanOver(Metric):
    """The mean of a score over the columns that have one; NaN where none has."""

    outputs: list[Tensor]
    targets: list[Tensor]

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score
        self.add_state("outputs", [], dist_reduce_fx="cat")
        self.add_state("targets", [], dist_reduce_fx="cat")

    def update(self, output: Tensor, target: Tensor) -> None:
        self.outputs.append(output.detach().float())
        self.targets.append(target)

    def compute(self) -> Tensor:
        each = self.score(dim_zero_cat(self.outputs).cpu(), dim_zero_cat(self.targets).cpu())
        return each.nanmean().float().to(self.device)


class MeanShare(Metric):
    """The mean of shares, right / total, over those that have a total."""

    right: Tensor
    total: Tensor

    def __init__(self, count: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], shares: int = 1) -> None:
        """`count` gives what is right and what there is of a batch, (shares,) each."""
        super().__init__()
        self.count = count
        self.add_state("right", torch.zeros(shares, dtype=torch.long), dist_reduce_fx="sum")
        self.add_state("total", torch.zeros(shares, dtype=torch.long), dist_reduce_fx="sum")

    def update(self, output: Tensor, target: Tensor) -> None:
        right, total = self.count(output, target)
        self.right += right
        self.total += total

    def compute(self) -> Tensor:
        there = self.total > 0
        return (self.right[there] / self.total[there]).mean()
