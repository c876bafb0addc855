"""What a table may hold besides classes: tags, of which an image has any number, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection

from ..settings import Config, ConfigError
from .base import classification
from .columns import MeanOver, absolute_errors, areas, constant, f1s, r2s
from .networks import Signature
from .objectives import Objective


class Tags(Objective):
    """Each tag there or not, whatever the others are: sigmoid cross-entropy; area under the ROC curve and F1."""

    monitor = "auc"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = list(names)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of logits (B, tags) against zeros and ones (B, tags)."""
        return nn.functional.binary_cross_entropy_with_logits(output, target.to(output))

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Tags that are there in all images of a split or in none."""
        problems, remarks = [], []
        for split, own in targets.items():
            alike = [self.names[column] for column in constant(own)]
            if len(alike) == len(self.names):
                problems.append(f"no tag is in some images of {split} and not in others; AUC needs one that is")
            elif alike:
                remarks.append(
                    f"in all images of {split} or in none: {', '.join(alike)}; AUC is the mean over the others"
                )
        return problems, remarks

    def scores(self) -> MetricCollection:
        """The area under the ROC curve and F1, means over the tags that have them."""
        return MetricCollection({"auc": MeanOver(areas), "f1": MeanOver(f1s)})

    def each(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        """Both of every tag."""
        return {"auc": areas(output, target), "f1": f1s(output, target)}


class Numbers(Objective):
    """Measurements: Huber loss of standardised numbers; mean absolute error and R², the share of variance explained."""

    monitor = "r2"
    mean: Tensor
    scale: Tensor

    def __init__(self, names: Sequence[str], scaling: Sequence[tuple[float, float]]) -> None:
        super().__init__()
        self.names = tuple(names)
        mean, std = torch.tensor(scaling).T
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("scale", std, persistent=False)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of numbers (B, names) in their own units."""
        scale = self.scale.to(output)
        return nn.functional.smooth_l1_loss(output / scale, target.to(output) / scale)

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Measurements that are the same for all images of a split."""
        problems, remarks = [], []
        for split, own in targets.items():
            alike = [self.names[column] for column in constant(own)]
            said = f"the same for all images of {split}: {', '.join(alike)}"
            if alike and split == "train":
                problems.append(f"{said}; nothing can be fitted there: leave it out")
            elif len(alike) == len(self.names):
                problems.append(f"{said}; R² needs a number that varies")
            elif alike:
                remarks.append(f"{said}; R² is the mean over the others")
        return problems, remarks

    def scores(self) -> MetricCollection:
        """R², mean over the measurements that vary, and the mean absolute error where there is one unit."""
        scores: dict[str, Metric | MetricCollection] = {"r2": MeanOver(r2s)}
        if len(self.names) == 1:
            scores["mean_absolute_error"] = MeanOver(absolute_errors)
        return MetricCollection(scores)

    def each(self, output: Tensor, target: Tensor) -> dict[str, Tensor]:
        """R² and the mean absolute error of every measurement, in its own unit."""
        return {"r2": r2s(output, target), "mean_absolute_error": absolute_errors(output, target)}


def by_labels(config: Config, signature: Signature) -> Objective:
    """The objective for what the labels are."""
    for name in ("label_smoothing", "class_weights"):
        if signature.kind in ("numbers", "tags") and config[name]:
            raise ConfigError(f"{name} = {config[name]}: is for classes, not for {signature.kind}; leave it out")
    if signature.kind == "numbers":
        return Numbers(signature.classes, signature.scaling)
    return Tags(signature.classes) if signature.kind == "tags" else classification(config, signature)
