"""The final numbers of a run, and those of any network on any split."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from ..data import Split
from ..data.landmarks import found, locate
from ..runs.per_image import pack, pack_classes
from ..runs.trained import Trained
from ..session import Session
from ..tasks import find_task
from ..tasks.objectives import Classification, Landmarks
from .elements import transforms_of
from .invariance import MAP_IMAGES, accuracies, relative_change
from .scores import answers, apart, best_device, confusion, mistakes, predictions, scores
from .statistics import behind_accuracy, intervals, success_interval

if TYPE_CHECKING:
    from ..data.mask_split import MaskSplit

MOVED_IMAGES = 500


def weights_in(network: torch.nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(p.numel() for p in network.parameters() if p.requires_grad)


def evaluate_run(session: Session) -> dict[str, Any]:
    """Score the run's best network and write `results.json`: then the run is finished."""
    run, split = session.run, session.test_again()
    trained = session.trained.to(best_device(session.config))
    results = {"split": session.tested, "images": len(split), "synthetic": bool(split.synthetic)}
    results |= score(trained, split)
    results |= {"data": session.manifest.fingerprint} if session.manifest is not None else {}
    results["checkpoint_metric"] = trained.checkpoint_metric
    results["seconds"] = round(sum(row["seconds"] for row in run.read_metrics()), 2)
    run.write_results(results)
    return results


def score(trained: Trained, split: Split) -> dict[str, Any]:
    """The scores of a network, what is known of each class, and how it fares when images are transformed."""
    about = {"task": trained.config.task, "parameters": weights_in(trained)}
    objective = find_task(trained.config).objective(trained.config, trained.signature)
    change = partial(relative_change, trained, split, MOVED_IMAGES)
    if split.kind == "masks":
        from .mask_scores import score_masks  # only now: all that images with masks need comes with it

        masks = score_masks(trained, cast("MaskSplit", split))
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
