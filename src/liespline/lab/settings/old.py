"""Configurations of earlier versions, brought to the words of this one: the only place that knows both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .words import ConfigError, shown

FORMAT = 3
"""What `Config.plain` writes. Format 2 was never released; before it, configurations named no format."""
_BY_A_RUN = {"devices", "nodes", "precision"}
"""Settings of the training that every run of before wrote down, and that no person needs to."""

RENAMED = {
    "labels_are": "label_type", "window": "intensity_range",
    "n_h": "elements", "n_k": "basis", "within": "max_angle", "weights": "parameters", "disc": "circular_mask",
    "grids": "tta_grids",
    "batch": "batch_size", "decay": "weight_decay", "shift": "grid_jitter", "share": "train_fraction",
    "valid_too": "train_on_val", "start_from": "init_from",
}  # fmt: skip
"""Settings that were called otherwise before 0.3.0."""
VALUES: dict[str, dict[Any, Any]] = {
    "kernel": {"apart": "pointwise"},
    "optimiser": {"adamw-modes": "spectral-adamw"},
    "schedule": {"usual": "cosine"},
    "grid_jitter": {True: 1.0, False: 0.0},
}
"""Values of settings, by their names of today."""
GONE = ("nan_guard",)
"""Settings of the training that only switched off what costs nothing now."""
AUGMENT = {
    "turns": "rotate", "flips": "flip", "flips-turns": "rotate+flip", "flip-rotate": "rotate+flip",
    "slant": "zoom-shear", "spin": "rotate-z+zoom-shear", "elastic-slant": "zoom-shear+elastic",
}  # fmt: skip
"""Augmentations that are called otherwise now."""
_AUGMENT_OF_RUNS = AUGMENT | {"mirror": "mirror+zoom-shear", "elastic": "affine+elastic"}
"""With the two names that mean less now than they did."""
TASKS = {
    "pcam": "studies.paper.pcam:PCAM",
    "celeba": "studies.paper.celeba:CELEBA",
    "rotmnist": "studies.digits:ROTMNIST",
    "mnist": "studies.digits:MNIST",
}
"""Tasks that moved out of the package."""
SHORT = {new: old for old, new in TASKS.items()}
NETWORKS = {"pcam": "pcam", "celeba": "celeba", "landmarks": "celeba", "segment": "unet"}
"""The network of a task, where the configuration only said: not a ResNet."""


def translated(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The plain values of a configuration as this version reads them, without their `format`.

    What a run of an earlier version wrote is translated. A file by hand needs no format: its words are today's, and
    one that was renamed is refused with its new name.
    """
    values = dict(values)
    found = values.pop("format", None)
    network, training = values.get("network"), values.get("training")
    if isinstance(training, dict):
        training = values["training"] = {name: value for name, value in training.items() if name not in GONE}
    if found is None and isinstance(training, dict) and training.keys() >= _BY_A_RUN:
        found = 1
    if found not in (None, 1, 2, FORMAT) or isinstance(found, bool):
        raise ConfigError(f"{where}: is of format {shown(found)}; this version reads up to {FORMAT}: update it")
    if found == 1:
        if isinstance(network, dict):
            values["network"] = _elements_counted(network)
        if isinstance(training, dict) and isinstance(name := training.get("augment"), str):
            values["training"] = training | {"augment": _AUGMENT_OF_RUNS.get(name, name)}
    if found in (1, 2):
        values = _renamed(values)
        for part in ("network", "training"):
            if isinstance(values.get(part), dict):
                values[part] = _renamed(values[part])
    else:
        _refuse_old_words(values, where)
    return _placed(values)


def _renamed(part: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of one part by their names and values of today."""
    named = {RENAMED.get(name, name): value for name, value in part.items()}
    for name in named.keys() & VALUES.keys():
        if isinstance(named[name], (str, bool)):
            named[name] = VALUES[name].get(named[name], named[name])
    return named


def _refuse_old_words(values: Mapping[str, Any], where: str) -> None:
    for part in (values, values.get("network"), values.get("training")):
        for name in part if isinstance(part, Mapping) else ():
            if name in RENAMED:
                raise ConfigError(f"{where}: {name!r} is called {RENAMED[name]!r} now")


def _placed(values: dict[str, Any]) -> dict[str, Any]:
    """With the network that the task had, and the task where it is now."""
    task, network = str(values.get("task")), values.get("network")
    if task in NETWORKS and (network is None or (isinstance(network, dict) and "architecture" not in network)):
        words = dict(network or {})
        if words.get("network", "classifier") == "classifier":
            values = {**values, "network": {**words, "network": NETWORKS[task]}}
    return {**values, "task": TASKS[task]} if task in TASKS else values


def _elements_counted(network: Mapping[str, Any]) -> dict[str, Any]:
    """Of O(2), rotations were counted, and all of them came reflected too."""
    doubled = ["n_h", *(["n_k"] if network.get("kernel") in ("dense", "atrous") else [])]
    counted = [name for name in doubled if network.get("group") == "o2" and type(network.get(name)) is int]
    return {**network, **{name: 2 * network[name] for name in counted}}
