"""What a trained network is worth: its answers, its scores, what it mistakes for what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torchmetrics import MeanMetric
from torchmetrics.functional.classification import multiclass_confusion_matrix

from ..data import Split, as_float
from ..runs.trained import Trained
from ..settings import Config
from ..tasks import find_task

BATCH = 256
AUTOCAST = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
MOST_VOXELS = 2**20
SHOWN_MISTAKES = 12


def best_device(config: Config) -> str:
    """The device to evaluate on."""
    return "cuda" if torch.cuda.is_available() and config.training.accelerator != "cpu" else "cpu"


def at_once(space: Sequence[int], most: int) -> int:
    """How many images of this size make a batch."""
    return max(1, min(most, MOST_VOXELS // math.prod(space)))


def batches(split: Split, limit: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """The first `limit` images of a split with their targets, evenly spread over it, as floats."""
    count = len(split)
    rows = torch.arange(count)
    if limit is not None and limit < count:
        rows = (torch.arange(limit) * count / limit).long()
    for part in torch.split(rows, at_once(split.space, BATCH)):
        images, targets = split.__getitems__(part.tolist())
        yield as_float(images), targets


@torch.no_grad()
def answers(trained: Trained, split: Split, limit: int | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Outputs and targets, a batch at a time, on the CPU."""
    device = next(trained.parameters()).device
    for images, targets in batches(split, limit):
        yield outputs_of(trained, images.to(device)).cpu(), targets


def in_precision(name: str, device: str) -> AbstractContextManager[Any]:
    """Compute as training with `precision: name` does, on a device of this type."""
    return torch.autocast(device, AUTOCAST[name]) if name in AUTOCAST else nullcontext()


def outputs_of(trained: Trained, images: Tensor) -> Tensor:
    """What the network says, as float32; on a GPU computed as in training, where float32 takes many times as long."""
    if not images.is_cuda:
        return trained(images).float()
    with in_precision(trained.config.training.precision, "cuda"):
        return trained(images).float()


def predictions(trained: Trained, split: Split, limit: int | None = None) -> tuple[Tensor, Tensor]:
    """All outputs and targets of a split, for classes: heatmaps would be hundreds of MB."""
    outputs, targets = zip(*answers(trained, split, limit), strict=True)
    return torch.cat(outputs), torch.cat(targets)


def scores(trained: Trained, pairs: Iterable[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Loss and scores of batches of outputs and targets, none of which is kept."""
    objective = find_task(trained.config).objective(trained.config, trained.signature).eval()
    counters, loss = objective.scores(), MeanMetric()
    for outputs, targets in pairs:
        counters.update(outputs, targets)
        loss.update(objective.loss(outputs, targets), len(outputs))
    found = {"loss": float(loss.compute()), **{name: float(value) for name, value in counters.compute().items()}}
    return {name: value for name, value in found.items() if not math.isnan(value)}  # the undefined ones


PER = {"classes": "per_class", "tags": "per_tag", "numbers": "per_column"}


def apart(trained: Trained, outputs: Tensor, targets: Tensor) -> dict[str, Any]:
    """The scores of every class, tag or number, and those for which a score is undefined: no mean counts them."""
    signature = trained.signature
    each = find_task(trained.config).objective(trained.config, signature).each(outputs, targets)
    values = {score: dict(zip(signature.classes, own.tolist(), strict=True)) for score, own in each.items()}
    known = {score: {name: v for name, v in own.items() if not math.isnan(v)} for score, own in values.items()}
    undefined = {score: [name for name in own if name not in known[score]] for score, own in values.items()}
    return {
        PER[signature.kind]: {
            name: {score: own[name] for score, own in known.items() if name in own} for name in signature.classes
        },
        "undefined": {score: names for score, names in undefined.items() if names},
    }


def confusion(outputs: Tensor, targets: Tensor, classes: int) -> list[list[int]]:
    """How many images of each true class (rows) were taken for each class (columns)."""
    table: list[list[int]] = multiclass_confusion_matrix(outputs, targets, classes).tolist()
    return table


def mistakes(outputs: Tensor, targets: Tensor) -> list[list[float]]:
    """The wrong answers that were given with most confidence: row, answer and probability of each."""
    confidence, answer = outputs.softmax(-1).max(-1)
    wrong = (answer != targets).nonzero()[:, 0]
    shown = wrong[confidence[wrong].argsort(descending=True, stable=True)][:SHOWN_MISTAKES]
    return [[int(row), int(answer[row]), float(confidence[row])] for row in shown]
