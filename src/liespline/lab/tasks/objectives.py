"""What a network is trained for: its loss, its scores, and the one score that picks the best epoch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC

from ..data.landmarks import balancing_weights, found, heatmaps, locate


class Objective(nn.Module):
    """A loss with the scores that go with it."""

    monitor: str
    """The score, higher is better, that picks the best epoch."""

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The number to make small."""
        raise NotImplementedError

    def scores(self) -> MetricCollection:
        """Fresh counters of the scores, to be fed with the outputs and targets of a split."""
        raise NotImplementedError


class Classification(Objective):
    """One class out of several: cross-entropy, accuracy, and the area under the ROC curve of two classes."""

    monitor = "accuracy"

    def __init__(self, classes: Sequence[str]) -> None:
        super().__init__()
        self.classes = tuple(classes)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Softmax cross-entropy of logits (B, classes) against class numbers (B,)."""
        return nn.functional.cross_entropy(output, target)

    def scores(self) -> MetricCollection:
        """Accuracy over all images, and the AUC where there are two classes."""
        count = len(self.classes)
        scores: dict[str, Metric | MetricCollection] = {"accuracy": MulticlassAccuracy(count, average="micro")}
        if count == 2:
            scores["auc"] = MulticlassAUROC(count)
        return MetricCollection(scores)


class SuccessRate(Metric):
    """The share of landmarks located near enough (paper, section 4), over landmarks and images."""

    found: Tensor
    total: Tensor

    def __init__(self, blur: float) -> None:
        super().__init__()
        self.blur = blur
        self.add_state("found", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("total", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, output: Tensor, target: Tensor) -> None:
        """Count the landmarks of a batch: maps (B, L, H, W), landmarks (B, L, 2)."""
        hits = found(locate(output, self.blur), target)
        self.found += hits.sum()
        self.total += hits.numel()

    def compute(self) -> Tensor:
        """The share."""
        return self.found / self.total


class Landmarks(Objective):
    """Landmarks as heatmaps: balanced sigmoid cross-entropy, success rate (paper, section 4)."""

    monitor = "success"

    def __init__(self, blur: float) -> None:
        super().__init__()
        self.blur = blur

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of logits (B, L, H, W) against Gaussians at the landmarks (B, L, 2)."""
        output = output.to(torch.promote_types(output.dtype, torch.float32))  # bfloat16 knows half pixels at best
        maps = heatmaps(target.to(output.dtype), (output.shape[-2], output.shape[-1]))
        return nn.functional.binary_cross_entropy_with_logits(output, maps, balancing_weights(maps))

    def scores(self) -> MetricCollection:
        """The success rate."""
        return MetricCollection({"success": SuccessRate(self.blur)})
