"""What a trained network is worth: its answers, its scores, what it mistakes for what."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

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
def predictions(trained: Trained, split: Split, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """Outputs and targets over a split, on the CPU."""
    device = next(trained.parameters()).device
    pairs = [(trained(x.to(device)).float().cpu(), y) for x, y in batches(split, limit)]
    outputs, targets = zip(*pairs, strict=True)
    return torch.cat(outputs), torch.cat(targets)


def scores(trained: Trained, outputs: Tensor, targets: Tensor) -> dict[str, float]:
    """Loss and scores of outputs that `predictions` gave."""
    objective = find_task(trained.config.task).objective(trained.config, trained.signature)
    counters = objective.scores()
    counters.update(outputs, targets)
    values = {name: float(value) for name, value in counters.compute().items()}
    return {"loss": float(objective.loss(outputs, targets)), **values}


def confusion(outputs: Tensor, targets: Tensor, classes: int) -> list[list[int]]:
    """How many images of each true class (rows) were taken for each class (columns)."""
    pairs = targets * classes + outputs.argmax(-1)
    table = torch.bincount(pairs, minlength=classes * classes).view(classes, classes)
    return [[int(value) for value in row] for row in table]
