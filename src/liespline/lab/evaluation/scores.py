"""What a trained network is worth: its answers, its scores, what it mistakes for what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor
from torchmetrics import MeanMetric
from torchmetrics.functional.classification import multiclass_confusion_matrix

from ..data import Split, as_float
from ..runs.trained import Trained
from ..tasks import find_task

BATCH = 256


def batches(split: Split, limit: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """The first `limit` images of a split with their targets, evenly spread over it, as floats."""
    count = len(split)
    rows = torch.arange(count)
    if limit is not None and limit < count:
        rows = (torch.arange(limit) * count / limit).long()
    for part in torch.split(rows, BATCH):
        images, targets = split.__getitems__(part.tolist())
        yield as_float(images), targets


@torch.no_grad()
def answers(trained: Trained, split: Split, limit: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs and targets, a batch at a time, on the CPU."""
    device = next(trained.parameters()).device
    for images, targets in batches(split, limit):
        yield trained(images.to(device)).float().cpu(), targets


def predictions(trained: Trained, split: Split, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """All outputs and targets of a split, for classes: heatmaps would be hundreds of MB."""
    outputs, targets = zip(*answers(trained, split, limit), strict=True)
    return torch.cat(outputs), torch.cat(targets)


def scores(trained: Trained, pairs: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Loss and scores of batches of outputs and targets, none of which is kept."""
    objective = find_task(trained.config.task).objective(trained.config, trained.signature)
    counters, loss = objective.scores(), MeanMetric()
    for outputs, targets in pairs:
        counters.update(outputs, targets)
        loss.update(objective.loss(outputs, targets), len(outputs))
    return {"loss": float(loss.compute()), **{name: float(value) for name, value in counters.compute().items()}}


def confusion(outputs: Tensor, targets: Tensor, classes: int) -> list[list[int]]:
    """How many images of each true class (rows) were taken for each class (columns)."""
    table: list[list[int]] = multiclass_confusion_matrix(outputs, targets, classes).tolist()
    return table
