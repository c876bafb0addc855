"""What a segmentation is trained for and scored by: Dice with cross-entropy, and per class Dice, IoU, sensitivity."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torchmetrics import Metric, MetricCollection

from ..data.samples import IGNORE
from .objectives import OfClasses

SMOOTH = 1.0  # voxel: a class that is neither there nor predicted counts as found


def soft_dice(logits: Tensor, target: Tensor, classes: Sequence[int]) -> Tensor:
    """Dice of probabilities, of each of `classes`, over the whole batch: (classes,).

    D_c = (2 Σ p_c t_c + 1) / (Σ p_c + Σ t_c + 1), sums over all voxels of the batch that are not ignored.
    """
    seen = target != IGNORE
    shares = logits.softmax(1).movedim(1, -1)[seen]  # (voxels, K)
    truth = nn.functional.one_hot(target[seen].long(), logits.shape[1]).to(shares)
    both, either = (shares * truth).sum(0), shares.sum(0) + truth.sum(0)
    return ((2 * both + SMOOTH) / (either + SMOOTH))[list(classes)]


def confusions(found: Tensor, truth: Tensor, classes: int, inside: Tensor | None = None) -> Tensor:
    """How many voxels of each true class (rows) were predicted as each class (columns), where `inside`: (K, K).

    torchmetrics' own count takes K² numbers of memory for each voxel where torch is to be deterministic.
    """
    seen = truth != IGNORE
    seen = seen if inside is None else seen & inside
    pairs = truth[seen].long() * classes + found[seen].long()
    return torch.bincount(pairs, minlength=classes**2).view(classes, classes)


def dice(table: Tensor) -> Tensor:
    """Dice of each class from its table, 2h / (a + t) with hits h, voxels a predicted and t true: (K,).

    NaN for a class that is neither there nor predicted.
    """
    table = table.double()
    return 2 * table.diagonal(dim1=-2, dim2=-1) / (table.sum(-1) + table.sum(-2))


class MaskScores(Metric):
    """The mean Dice of all classes but the first, over all voxels of a split.

    Classes that are neither there nor predicted do not count; where all are absent, the mean is 1.
    """

    table: Tensor

    def __init__(self, classes: Sequence[str]) -> None:
        super().__init__()
        self.names = tuple(classes)
        self.add_state("table", torch.zeros(len(classes), len(classes), dtype=torch.long), dist_reduce_fx="sum")

    def update(self, output: Tensor, target: Tensor) -> None:
        """Count voxels of logits (B, K, *space), or of class numbers (*space), against class numbers, 255 ignored."""
        found = output.argmax(1) if output.is_floating_point() else output
        self.table += confusions(found, target, len(self.names)).to(self.table.device)

    def compute(self) -> Tensor:
        return dice(self.table)[1:].nanmean().nan_to_num(1.0).float()

    def per_class(self) -> dict[str, float]:
        """Dice, IoU h / (a + t − h) and sensitivity h / t by name, where they are defined."""
        hits, true, predicted = self.table.diagonal().double(), self.table.sum(1), self.table.sum(0)
        kinds = {"Dice": dice(self.table), "IoU": hits / (true + predicted - hits), "sensitivity": hits / true}
        each = [(f"{kind}, {name}", float(kinds[kind][i])) for i, name in enumerate(self.names) for kind in kinds]
        return {name: value for name, value in each if not math.isnan(value)}


class Segmentation(OfClasses):
    """A class for every voxel: cross-entropy plus one minus the mean Dice of all classes but the first.

    Weighted, voxels of a class count 1/√(share of the class).
    """

    monitor = "dice"

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
        return entropy + 1 - soft_dice(output, target, range(1, len(self.names))).mean()

    def scores(self) -> MetricCollection:
        """The mean Dice; evaluation tells each class apart."""
        return MetricCollection({"dice": MaskScores(self.names)})


def balanced_weights(counts: Tensor) -> Tensor:
    """Class weights 1/√share of mean 1: no weights would drown rare classes, and 1/share would overstate them."""
    weights = (1 / counts.double().clamp_min(1)).sqrt()
    return (weights / weights.mean()).float()
