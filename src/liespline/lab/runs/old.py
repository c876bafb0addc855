"""What version 0.2 wrote: model files whose widths followed from their task, and results with other names."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..networks import Signature, fitting_widths
from ..settings import Config, Network

WIDTHS = {
    "digits": (6, 8, 12, 16), "rotmnist": (16, 24, 32, 48), "mnist": (16, 24, 32, 48),
    "images": (12, 16, 24, 32, 48), "volumes": (6, 8, 12), "pcam": (8, 12, 16, 24),
}  # fmt: skip
"""The defaults of each task."""
RESNET = (24, 24, 48, 48)
KINDS = {"celeba": "points", "unet": "masks"}
"""What comes out, by the network; a file of before 0.2 may not say so."""
WHOLE = {"pcam": (96, 96)}
PICKED_BY = {"tags": "auc", "numbers": "r2", "points": "success", "masks": "dice"}
"""The score that epochs were picked by, where a file does not say so; of classes, accuracy."""
RESULTS = {
    "weights": "parameters", "moves": "transformed", "turned": "rotated_masks", "selected_by": "checkpoint_metric",
    "seen": "train_overlap", "majority": "majority_class_accuracy",
}  # fmt: skip
MASKS = {"turned": "rotated", "follows": "rotation_consistency"}
"""Inside of `rotated_masks`."""


def best_so_far(state: Mapping[str, Any]) -> tuple[float, int]:
    """The loss of the best epoch and how many came after it; runs of 0.2 kept the first of equal epochs."""
    return state.get("loss", -math.inf), state.get("waited", 0)


def results_renamed(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a run by the names of today."""
    named = {RESULTS.get(name, name): value for name, value in results.items()}
    if isinstance(masks := named.get("rotated_masks"), dict):
        named["rotated_masks"] = {MASKS.get(name, name): value for name, value in masks.items()}
    return named


def renewed(about: Mapping[str, Any], config: Config, signature: Signature) -> tuple[Config, Signature]:
    """The description of a network, with all that `networks.build` needs to know."""
    values, network = about["config"], config.network
    if isinstance(values.get("network"), dict) and "architecture" in values["network"]:
        return config, signature
    task, widths = str(values.get("task")), network.widths
    if network.network == "resnet" and widths == WIDTHS.get(task):
        config = config.updated(widths=RESNET)
    elif task in ("images", "volumes") and network.network == "classifier":
        config = config.updated(widths=fitting_widths(Network(widths=WIDTHS[task]), network, signature.space))
    kind = signature.kind if "kind" in about["signature"] else KINDS.get(network.network, "classes")
    return config, replace(signature, kind=kind, whole=WHOLE.get(task, ()))


def metric_of(about: Mapping[str, Any], config: Config, signature: Signature) -> str | None:
    """The score that the epoch of a network was picked by; files name one even where the last epoch was taken."""
    if config.training.train_on_val:
        return None
    named = about.get("checkpoint_metric", about.get("selected_by"))
    return str(named or PICKED_BY.get(signature.kind, "accuracy"))[:40]
