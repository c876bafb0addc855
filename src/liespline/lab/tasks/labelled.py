"""What is learned from a table besides classes: tags, of which an image has any number, and numbers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchmetrics import MeanAbsoluteError, Metric, MetricCollection, R2Score
from torchmetrics.classification import MultilabelAUROC, MultilabelF1Score

from ..settings import Config, ConfigError
from .base import classification
from .networks import Signature
from .objectives import Objective, OfProbabilities


class Tags(Objective):
    """Each tag there or not, whatever the others are: sigmoid cross-entropy; area under the ROC curve and F1."""

    monitor = "auc"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = list(names)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of logits (B, tags) against zeros and ones (B, tags)."""
        return nn.functional.binary_cross_entropy_with_logits(output, target.to(output))

    def scores(self) -> MetricCollection:
        """The mean area under the ROC curve and F1 over tags."""
        each = {"auc": MultilabelAUROC(len(self.names)), "f1": MultilabelF1Score(len(self.names))}
        return MetricCollection({name: OfProbabilities(score, torch.sigmoid) for name, score in each.items()})


class Numbers(Objective):
    """Measurements: Huber loss of standardised numbers; mean absolute error and R², the share of variance explained."""

    monitor = "r2"
    scale: Tensor

    def __init__(self, names: Sequence[str], scaling: Sequence[tuple[float, float]]) -> None:
        super().__init__()
        self.names = tuple(names)
        self.register_buffer("scale", torch.tensor([std for _, std in scaling]), persistent=False)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of numbers (B, names) in their own units."""
        scale = self.scale.to(output)
        return nn.functional.smooth_l1_loss(output / scale, target.to(output) / scale)

    def scores(self) -> MetricCollection:
        """R², mean over the measurements, and the mean absolute error where there is one unit."""
        scores: dict[str, Metric | MetricCollection] = {"r2": R2Score(multioutput="uniform_average")}
        if len(self.names) == 1:
            scores["mean_absolute_error"] = MeanAbsoluteError()
        return MetricCollection(scores)


def by_labels(config: Config, signature: Signature) -> Objective:
    """The objective for what the labels are."""
    for name in ("label_smoothing", "class_weights"):
        if signature.kind in ("numbers", "tags") and config[name]:
            raise ConfigError(f"{name} = {config[name]}: is for classes, not for {signature.kind}; leave it out")
    if signature.kind == "numbers":
        return Numbers(signature.classes, signature.scaling)
    return Tags(signature.classes) if signature.kind == "tags" else classification(config, signature)
