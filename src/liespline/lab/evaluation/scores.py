"""What a trained network is worth: its answers, its scores, what it mistakes for what, image by image."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import MeanMetric
from torchmetrics.functional.classification import multiclass_confusion_matrix

from ..data import Split, as_float
from ..data.arrays import Array
from ..runs.trained import Trained
from ..settings import Config
from ..tasks import find_task

BATCH = 256
AUTOCAST = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
MOST_VOXELS = 2**20
SHOWN_MISTAKES = 12
PER = {"classes": "per_class", "tags": "per_tag", "numbers": "per_column"}
KINDS = {"true": "<u2", "predicted": "<u2", "log_odds": "<f2", "found": "<f2", "dice": "<f4"}
"""What can be known of an image, and how it is stored: zlib and base64 around the bytes of one number per image.

Classes have their true and predicted number, and log p/(1 − p) of the true class: a float16 has three digits of it,
where those of p itself would end at 0.9995. Landmarks have the share that was found, masks their mean Dice.
"""
NAMES = "names_hash"


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


def pack(names: Sequence[str], **values: Tensor) -> dict[str, str]:
    """One array per kind, (N,), with a fingerprint of the names of the images, in their order."""
    kept = {
        kind: value.cpu().double().clamp(-65504, 65504).numpy().astype(KINDS[kind]) for kind, value in values.items()
    }
    packed = {kind: base64.b64encode(zlib.compress(array.tobytes(), 9)).decode() for kind, array in kept.items()}
    return {NAMES: hashlib.blake2b(json.dumps(list(names)).encode(), digest_size=5).hexdigest()} | packed


def pack_classes(names: Sequence[str], outputs: Tensor, targets: Tensor) -> dict[str, str]:
    """What is kept of logits (N, classes) and the true classes (N,)."""
    logits, at = outputs.double(), targets.unsqueeze(1)
    others = logits.scatter(1, at, float("-inf")).logsumexp(1)
    return pack(names, true=targets, predicted=outputs.argmax(1), log_odds=logits.gather(1, at)[:, 0] - others)


def unpack(packed: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays again, (N,) each."""
    stored = {kind: zlib.decompress(base64.b64decode(text)) for kind, text in packed.items() if kind != NAMES}
    return {kind: np.frombuffer(raw, KINDS[kind]) for kind, raw in stored.items()}
