"""What a segmentation is trained for and scored by: Dice with cross-entropy, and per class Dice, IoU, sensitivity."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassConfusionMatrix

from ..data.ragged import IGNORE
from .objectives import Objective

SMOOTH = 1.0  # voxel: a class that is neither there nor answered counts as found


def soft_dice(logits: Tensor, target: Tensor, classes: Sequence[int]) -> Tensor:
    """Dice of probabilities, of each of `classes`, over the whole batch: (classes,).

    D_c = (2 Σ p_c t_c + 1) / (Σ p_c + Σ t_c + 1), sums over all voxels of the batch that are not ignored.
    """
    seen = target != IGNORE
    shares = logits.float().softmax(1).movedim(1, -1)[seen]  # (voxels, K)
    truth = nn.functional.one_hot(target[seen].long(), logits.shape[1]).to(shares)
    both, either = (shares * truth).sum(0), shares.sum(0) + truth.sum(0)
    dice: Tensor = ((2 * both + SMOOTH) / (either + SMOOTH))[list(classes)]
    return dice


class MaskScores(MulticlassConfusionMatrix):
    """Dice, IoU and sensitivity of each class over all voxels of a split, from torchmetrics' table of confusions.

    With the hits h, the voxels a answered and the voxels t true of a class: Dice 2h/(a + t), IoU h/(a + t − h),
    sensitivity h/t. `dice` is the mean over the classes but the first that are there or were answered.
    """

    def __init__(self, classes: Sequence[str]) -> None:
        super().__init__(len(classes), ignore_index=IGNORE)
        self.names = tuple(classes)

    def compute(self) -> dict[str, Tensor]:  # type: ignore[override]
        """Scores by name; classes that are nowhere have none."""
        table = self.confmat.double()
        hits, true, answered = table.diagonal(), table.sum(1), table.sum(0)
        dice = 2 * hits / (true + answered)  # NaN where there is nothing to find and nothing was found
        scores = {"dice": dice[1:].nanmean() if (true + answered)[1:].any() else torch.ones_like(dice[0])}
        for number, name in enumerate(self.names):
            if true[number] + answered[number] > 0:
                scores[f"dice {name}"] = dice[number]
                scores[f"iou {name}"] = hits[number] / (true + answered - hits)[number]
            if true[number] > 0:
                scores[f"sensitivity {name}"] = hits[number] / true[number]
        return {name: value.float() for name, value in scores.items()}


class Segmentation(Objective):
    """A class for every voxel: cross-entropy plus one minus the mean Dice of all classes but the first."""

    monitor = "dice"

    def __init__(self, classes: Sequence[str], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        self.classes = tuple(classes)
        if weights is not None and (len(weights) != len(classes) or min(weights) <= 0):
            raise ValueError(f"class weights {tuple(weights)}: expected {len(classes)} positive numbers, one per class")
        chosen = torch.tensor(weights or [1.0] * len(classes), dtype=torch.float32)
        self.register_buffer("weights", chosen / chosen.mean(), persistent=False)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of logits (B, K, *space) against class numbers (B, *space), 255 ignored."""
        weights = self.get_buffer("weights").to(output.device)
        entropy = nn.functional.cross_entropy(output.float(), target.long(), weights, ignore_index=IGNORE)
        return entropy + 1 - soft_dice(output, target, range(1, len(self.classes))).mean()

    def scores(self) -> MetricCollection:
        """Dice, IoU and sensitivity per class."""
        return MetricCollection({"masks": MaskScores(self.classes)})


def balanced_weights(counts: Sequence[int]) -> list[float]:
    """Class weights 1/√share of mean 1: between none, which drowns rare classes, and 1/share, which shouts them."""
    shares = torch.tensor(counts, dtype=torch.float64).clamp(min=1)
    weights = (shares.sum() / shares).sqrt()
    return [float(weight) for weight in weights / weights.mean()]
