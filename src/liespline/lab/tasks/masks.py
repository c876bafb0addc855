"""What a segmentation is trained for and scored by: Dice with cross-entropy, and per class Dice, IoU, sensitivity."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassConfusionMatrix

from ..data.samples import IGNORE
from .objectives import Objective

SMOOTH = 1.0  # voxel: a class that is neither there nor answered counts as found


def soft_dice(logits: Tensor, target: Tensor, classes: Sequence[int]) -> Tensor:
    """Dice of probabilities, of each of `classes`, over the whole batch: (classes,).

    D_c = (2 Σ p_c t_c + 1) / (Σ p_c + Σ t_c + 1), sums over all voxels of the batch that are not ignored.
    """
    seen = target != IGNORE
    shares = logits.softmax(1).movedim(1, -1)[seen]  # (voxels, K)
    truth = nn.functional.one_hot(target[seen].long(), logits.shape[1]).to(shares)
    both, either = (shares * truth).sum(0), shares.sum(0) + truth.sum(0)
    dice: Tensor = ((2 * both + SMOOTH) / (either + SMOOTH))[list(classes)]
    return dice


class MaskScores(MulticlassConfusionMatrix):
    """The mean Dice of all classes but the first, over all voxels of a split, from torchmetrics' table of confusions.

    With the hits h, the voxels a answered and the voxels t true of a class: Dice 2h/(a + t), IoU h/(a + t − h),
    sensitivity h/t. Classes that are neither there nor answered do not count.
    """

    def __init__(self, classes: Sequence[str]) -> None:
        super().__init__(len(classes), ignore_index=IGNORE)
        self.names = tuple(classes)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count the voxels of logits (B, K, *space), or of class numbers (*space), against class numbers, 255 ignored.

        torchmetrics' own count takes K² numbers of memory for each voxel where torch is to be deterministic.
        """
        found, seen, count = preds.argmax(1) if preds.is_floating_point() else preds, target != IGNORE, len(self.names)
        pairs = target[seen].long() * count + found[seen].long()
        self.confmat += torch.bincount(pairs, minlength=count**2).view(count, count).to(self.confmat.device)

    def compute(self) -> Tensor:
        """The mean Dice."""
        table = self.confmat.double()
        found = (table.sum(0) + table.sum(1))[1:] > 0
        dice = 2 * table.diagonal()[1:] / (table.sum(0) + table.sum(1))[1:].clamp_min(1)
        return (dice[found].mean() if found.any() else dice.new_ones(())).float()

    def per_class(self) -> dict[str, float]:
        """Dice, IoU and sensitivity by name; a class that is nowhere has none."""
        table = self.confmat.double()
        hits, true, answered = table.diagonal(), table.sum(1), table.sum(0)
        scores = {}
        for number, name in enumerate(self.names):
            if true[number] + answered[number] > 0:
                scores[f"Dice, {name}"] = float(2 * hits[number] / (true + answered)[number])
                scores[f"IoU, {name}"] = float(hits[number] / (true + answered - hits)[number])
            if true[number] > 0:
                scores[f"sensitivity, {name}"] = float(hits[number] / true[number])
        return scores


class Segmentation(Objective):
    """A class for every voxel: cross-entropy plus one minus the mean Dice of all classes but the first.

    `weighted`: in training, voxels of a class count 1/√(share of the class). `smoothing`: in training, that much of the
    target of the cross-entropy is shared out over all classes.
    """

    monitor = "dice"
    weights: Tensor

    def __init__(self, classes: Sequence[str], weighted: bool = False, smoothing: float = 0.0) -> None:
        super().__init__()
        self.classes, self.weighted, self.smoothing = tuple(classes), weighted, smoothing
        self.register_buffer("weights", torch.ones(len(self.classes)), persistent=False)

    def look_at(self, targets: Tensor) -> None:
        """Choose the weights by how many voxels each class has: (images, K)."""
        if self.weighted:
            self.weights = balanced_weights(targets.sum(0))

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of logits (B, K, *space) against class numbers (B, *space), 255 ignored."""
        weights = self.weights.to(output.device) if self.weighted and self.training else None
        output = output.to(torch.promote_types(output.dtype, torch.float32))
        shown = (target != IGNORE).any()
        entropy = output.sum() * 0
        if shown:
            share = self.smoothing if self.training else 0.0
            entropy = nn.functional.cross_entropy(output, target, weights, ignore_index=IGNORE, label_smoothing=share)
        return entropy + 1 - soft_dice(output, target, range(1, len(self.classes))).mean()

    def scores(self) -> MetricCollection:
        """The mean Dice; evaluation tells each class apart."""
        return MetricCollection({"dice": MaskScores(self.classes)})


def balanced_weights(counts: Tensor) -> Tensor:
    """Class weights 1/√share of mean 1: no weights would drown rare classes, and 1/share would overstate them."""
    weights = (1 / counts.double().clamp_min(1)).sqrt()
    return (weights / weights.mean()).float()
