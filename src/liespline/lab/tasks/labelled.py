"""What a table may hold besides classes: tags, of which an image has any number, and numbers; and how one is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torchmetrics import MetricCollection

from ..settings import Config, ConfigError
from .columns import MeanOver, absolute_errors, areas, f1s, r2s
from .networks import Signature
from .objectives import Classification, Landmarks, Objective


class Tags(Objective):
    """Each tag there or not, whatever the others are: sigmoid cross-entropy; area under the ROC curve and F1."""

    monitor = "auc"

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, auc=areas, f1=f1s)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of logits (B, tags) against zeros and ones (B, tags)."""
        return nn.functional.binary_cross_entropy_with_logits(output, target.to(output))

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Tags that are there in all images of a split or in none."""
        problems, remarks = [], []
        for split, alike in self._constant(targets):
            if len(alike) == len(self.names):
                problems.append(f"no tag is in some images of {split} and not in others; AUC needs one that is")
            else:
                words = f"in all images of {split} or in none: {', '.join(alike)}"
                remarks.append(f"{words}; AUC is the mean over the others")
        return problems, remarks


class Numbers(Objective):
    """Measurements: Huber loss of standardised numbers; mean absolute error and R², the share of variance explained."""

    monitor = "r2"
    scale: Tensor

    def __init__(self, names: Sequence[str], scaling: Sequence[tuple[float, float]]) -> None:
        super().__init__(names, r2=r2s, mean_absolute_error=absolute_errors)
        self.register_buffer("scale", torch.tensor([std for _, std in scaling]), persistent=False)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Of numbers (B, names) in their own units."""
        scale = self.scale.to(output)
        return nn.functional.smooth_l1_loss(output / scale, target.to(output) / scale)

    def missing(self, targets: Mapping[str, Tensor]) -> tuple[list[str], list[str]]:
        """Measurements that are the same for all images of a split."""
        problems, remarks = [], []
        for split, alike in self._constant(targets):
            said = f"the same for all images of {split}: {', '.join(alike)}"
            if split == "train":
                problems.append(f"{said}; nothing can be fitted there: leave it out")
            elif len(alike) == len(self.names):
                problems.append(f"{said}; R² needs a number that varies")
            else:
                remarks.append(f"{said}; R² is the mean over the others")
        return problems, remarks

    def scores(self) -> MetricCollection:
        """R², mean over the measurements that vary, and the mean absolute error where there is one unit."""
        return super().scores() if len(self.names) == 1 else MetricCollection({"r2": MeanOver(r2s)})


def by_kind(config: Config, signature: Signature) -> Objective:
    """The objective for what comes out of the network."""
    kind, training = signature.kind, config.training
    for name in ("label_smoothing", "class_weights"):
        if kind in ("numbers", "tags") and config[name]:
            raise ConfigError(f"{name} = {config[name]}: is for classes, not for {kind}; leave it out")
    if kind == "numbers":
        return Numbers(signature.classes, signature.scaling)
    if kind in ("tags", "points"):
        return Tags(signature.classes) if kind == "tags" else Landmarks()
    return Classification(signature.classes, training.class_weights, training.label_smoothing)
