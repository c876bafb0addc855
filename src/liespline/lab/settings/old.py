"""Configurations of earlier versions, brought to the words of this one: the only place that knows both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .words import ConfigError, shown

FORMAT = 2
"""What `Config.plain` writes. Before format 2, configurations said none."""
_BY_A_RUN = {"devices", "nodes", "precision"}
"""Settings of the training that every run of before wrote down, and that no person needs to."""

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

    What a run of an earlier version wrote is translated. A file by hand needs no format: its words are today's.
    """
    values = dict(values)
    found = values.pop("format", None)
    network, training = values.get("network"), values.get("training")
    if found is None and isinstance(training, dict) and training.keys() >= _BY_A_RUN:
        found = 1
    if found not in (None, 1, FORMAT) or isinstance(found, bool):
        raise ConfigError(f"{where}: is of format {shown(found)}; this version reads up to {FORMAT}: update it")
    if found == 1 and isinstance(network, dict):
        values["network"] = _elements_counted(network)
    if found == 1 and isinstance(training, dict) and isinstance(name := training.get("augment"), str):
        values["training"] = training | {"augment": _AUGMENT_OF_RUNS.get(name, name)}
    return _placed(values)


def _placed(values: dict[str, Any]) -> dict[str, Any]:
    """With the network that the task had, and the task where it is now."""
    task, network = str(values.get("task")), values.get("network")
    if task in NETWORKS and (network is None or (isinstance(network, dict) and "architecture" not in network)):
        words = dict(network or {})
        if words.get("network", "classifier") == "classifier":
            values = {**values, "network": {**words, "network": NETWORKS[task]}}
    return {**values, "task": TASKS[task]} if task in TASKS else values


def _elements_counted(network: dict[str, Any]) -> dict[str, Any]:
    """Of O(2), rotations were counted, and all of them came mirrored too."""
    doubled = ["n_h", *(["n_k"] if network.get("kernel") in ("dense", "atrous") else [])]
    counted = [name for name in doubled if network.get("group") == "o2" and type(network.get(name)) is int]
    return network | {name: 2 * network[name] for name in counted}
