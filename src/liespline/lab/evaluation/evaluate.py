"""The final numbers of a run, those of any network on any split, how sure they are, and those of single images."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from scipy.optimize import brentq
from scipy.stats import binomtest, bootstrap
from torch import Tensor
from torchmetrics.functional.classification import binary_auroc

from ..data import Split
from ..data.arrays import Array
from ..data.landmarks import found, locate
from ..runs.trained import Trained
from ..session import Session
from ..tasks import find_task
from ..tasks.objectives import Classification, Landmarks
from .elements import transforms_of
from .scores import (
    MAP_IMAGES,
    accuracies,
    answers,
    apart,
    best_device,
    calibration,
    confusion,
    mistakes,
    predictions,
    relative_change,
    scores,
)

if TYPE_CHECKING:
    from ..data.mask_split import MaskSplit

MOVED_IMAGES = 500
LEVEL = 0.95
Z = 1.959964  # two-sided
DRAWS = 1000
METHOD = (
    "95 %; accuracy and sensitivity after Wilson, balanced accuracy from those of its classes, AUC after Newcombe, "
    "landmarks that were found by 1,000 bootstrap samples of the images"
)
KINDS = {"true": "<u2", "predicted": "<u2", "log_odds": "<f2", "found": "<f2", "dice": "<f4"}
"""What can be known of an image, and how it is stored: zlib and base64 around the bytes of one number per image.

Classes have their true and predicted number, and log p/(1 − p) of the true class: a float16 has three digits of it,
where those of p itself would end at 0.9995. Landmarks have the share that was found, masks their mean Dice.
"""
NAMES = "names_hash"


def weights_in(network: torch.nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def evaluate_run(session: Session) -> None:
    """Score the run's best network and write `results.json`: then the run is finished."""
    run, split = session.run, session.test_again()
    trained = session.trained.to(best_device(session.config))
    results = {"split": session.tested, "images": len(split), "synthetic": bool(split.synthetic)}
    # Validation images that were neither trained on nor are tested on.
    seen = session.config.training.train_on_val or session.tested == "valid"
    results |= score(trained, split, None if seen else session.valid)
    results |= {"data": session.manifest.fingerprint} if session.manifest is not None else {}
    results["checkpoint_metric"] = trained.checkpoint_metric
    results["seconds"] = round(sum(row["seconds"] for row in run.read_metrics()), 2)
    run.write_results(results)
    session.results = results


def score(trained: Trained, split: Split, valid: Split | None = None, **of_masks: Any) -> dict[str, Any]:
    """The scores of a network, what is known of each class, and how it fares when images are transformed.

    A classifier's temperature is fitted on `valid`; `of_masks` is for `score_masks`.
    """
    about = {"task": trained.config.task, "parameters": weights_in(trained)}
    objective = find_task(trained.config).objective(trained.config, trained.signature)
    change = partial(relative_change, trained, split, MOVED_IMAGES)
    if split.kind == "masks":
        from .mask_scores import score_masks  # only now: all that images with masks need comes with it

        masks = score_masks(trained, cast("MaskSplit", split), **of_masks)
        return about | masks | {"rotated_masks": masks["rotated_masks"] | change()}
    if isinstance(objective, Landmarks):
        shown = {"images": min(len(split), MAP_IMAGES[len(split.space)])}
        return about | _of_landmarks(trained, split, objective) | {"transformed": shown | change()}
    outputs, targets = predictions(trained, split)
    results = about | {"scores": scores(trained, [(outputs, targets)]), **apart(trained, outputs, targets)}
    if not isinstance(objective, Classification):
        return results | {"transformed": {"images": min(len(split), MOVED_IMAGES), **change()}}
    table = confusion(outputs, targets, len(trained.classes))
    return results | {
        **behind_accuracy(table, trained.classes),
        "confusion": table,
        "interval": intervals(outputs, targets),
        "calibration": calibration(outputs, targets, None if valid is None else predictions(trained, valid)),
        "mistakes": mistakes(outputs, targets),
        "per_image": pack_classes(split.names, outputs, targets),
        "transformed": accuracies(trained, split, transforms_of(trained), MOVED_IMAGES) | change(),
    }


def _of_landmarks(trained: Trained, split: Split, objective: Landmarks) -> dict[str, Any]:
    hits: list[Tensor] = []

    def watched() -> Iterator[tuple[Tensor, Tensor]]:
        for maps, landmarks in answers(trained, split):
            hits.append(found(locate(maps, objective.blur), landmarks))
            yield maps, landmarks

    results: dict[str, Any] = {"scores": scores(trained, watched())}
    every = torch.cat(hits)
    of_images = pack(split.names, found=every.double().mean(-1))
    return results | {"interval": {"success": success_interval(every)}, "per_image": of_images}


def behind_accuracy(table: Sequence[Sequence[int]], classes: Sequence[str]) -> dict[str, Any]:
    """Sensitivity of each class (its recall), and the accuracy of a constant prediction, the most frequent class.

    `table` counts true classes down and predictions across. Classes without any image are left out.
    """
    counts = [sum(row) for row in table]
    present = [i for i, count in enumerate(counts) if count]
    return {
        "majority_class_accuracy": max(counts) / sum(counts),
        "sensitivity": {classes[i]: table[i][i] / counts[i] for i in present},
        "sensitivity_interval": {classes[i]: wilson(table[i][i], counts[i]) for i in present},
    }


def wilson(right: int, total: int) -> list[float]:
    """Wilson's interval for a share of `right` among `total`: all p with |right/total − p| ≤ z √(p(1 − p)/total)."""
    found = binomtest(right, total).proportion_ci(LEVEL, "wilson")
    return [float(found.low), float(found.high)]


def mean_of_shares(counts: Sequence[tuple[int, int]]) -> list[float]:
    """The interval of the mean of K shares p_k, `right` among `total` each, from Wilson's [l_k, u_k] of each share.

    p̄ − √Σ(p_k − l_k)² / K and p̄ + √Σ(u_k − p_k)² / K (Zou and Donner 2008). It has a width even where all shares are
    0 or 1; a bootstrap has none there.
    """
    shares, limits = [right / total for right, total in counts], [wilson(*count) for count in counts]
    mean = sum(shares) / len(shares)
    below, above = (
        math.hypot(*(limit[side] - share for share, limit in zip(shares, limits, strict=True))) / len(shares)
        for side in (0, 1)
    )
    return [mean - below, mean + above]


def intervals(outputs: Tensor, targets: Tensor) -> dict[str, list[float]]:
    """Intervals of accuracy, balanced accuracy and, for two classes, AUC, of outputs (N, classes)."""
    hits = outputs.argmax(-1) == targets
    limits = {"accuracy": wilson(int(hits.sum()), len(hits))}
    of_classes = [hits[targets == label] for label in targets.unique()]
    limits["balanced_accuracy"] = mean_of_shares([(int(own.sum()), len(own)) for own in of_classes])
    if outputs.shape[-1] == 2 and 0 < int(targets.sum()) < len(targets):
        area, second = float(binary_auroc(outputs.double().softmax(-1)[:, 1], targets)), int(targets.sum())
        limits["auc"] = area_interval(area, second, len(targets) - second)
    return limits


def area_variance(area: float, m: float, n: float) -> float:
    """How far areas A of other images scatter, m of one class and n of the other (Newcombe 2006, his fifth method).

    A(1 − A)(1 + ((m + n)/2 − 1)((1 − A)/(2 − A) + A/(1 + A))) / mn: the rule of Hanley and McNeil, averaged over which
    class comes first.
    """
    return area * (1 - area) * (1 + ((m + n) / 2 - 1) * ((1 - area) / (2 - area) + area / (1 + area))) / (m * n)


def area_interval(area: float, m: int, n: int) -> list[float]:
    """All A' from which the area is less than z √variance(A') away: as Wilson's, with a width even at 0 and 1."""

    def beyond(end: float) -> float:
        return (end - area) ** 2 - Z**2 * area_variance(end, m, n)

    inside = min(max(area, 1e-12), 1 - 1e-12)  # at 0 and 1 the variance is 0
    return [brentq(beyond, 0.0, inside), brentq(beyond, inside, 1.0)]


def success_interval(hits: Tensor) -> list[float]:
    """The middle 95 % of success rates of images drawn with replacement, always the same draws.

    `hits` (N, L) says which landmarks were found; those of one image go together.
    """
    rates = hits.double().mean(-1).numpy()
    if len(rates) == 1:  # nothing else can be drawn
        return [float(rates[0])] * 2
    at_once = max(1, 4_000_000 // len(rates))
    draws = bootstrap((rates,), np.mean, n_resamples=DRAWS, batch=at_once, method="percentile", rng=0)
    return [float(draws.confidence_interval.low), float(draws.confidence_interval.high)]


def pack(names: Sequence[str], **values: Tensor) -> dict[str, str]:
    """One array per kind, (N,), with a fingerprint of the names of the images, in their order."""
    kept = {kind: own.cpu().double().clamp(-65504, 65504).numpy().astype(KINDS[kind]) for kind, own in values.items()}
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
