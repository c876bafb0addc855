"""Configurations of earlier versions, brought to the words of this one: the only place that knows both."""

from collections.abc import Mapping
from typing import Any

from . import renamed
from .words import ConfigError, shown

FORMAT = 4
"""What `Config.plain` writes. Formats 2 and 3 were never released; before them, configurations named no format."""
_BY_A_RUN = {"devices", "nodes", "precision"}
"""Settings of the training that every run of before wrote down, and that no person needs to."""
_AUGMENT_OF_RUNS = {"mirror": "mirror+zoom-shear", "elastic": "affine+elastic"}
"""Augmentations that mean less now than they did."""
NETWORKS = {"pcam": "pcam", "celeba": "celeba", "landmarks": "celeba", "segment": "unet"}
"""The network of a task, where the configuration only said: not a ResNet."""

UNCHANGED = ("pcam", "celeba")
"""Networks that are the same in every version of the architecture."""


def translated(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The plain values of a configuration as this version reads them, without their `format`.

    What a run of an earlier version wrote is translated. A file by hand needs no format: its words are today's, and
    one that was renamed is refused with its new name.
    """
    parts = {name: dict(own) for name in ("network", "training") if isinstance(own := values.get(name), dict)}
    values, network, training = {**values, **parts}, parts.get("network", {}), parts.get("training", {})
    found = values.pop("format", None)
    for name in renamed.GONE:
        training.pop(name, None)
    if found is None and training.keys() >= _BY_A_RUN:
        found = 1
    if found not in (None, *range(1, FORMAT + 1)) or isinstance(found, bool):
        raise ConfigError(f"{where}: is of format {shown(found)}; this version reads up to {FORMAT}: update it")
    if found == 1:
        _count_elements(network)
        if isinstance(words := training.get("augment"), str):
            training["augment"] = _AUGMENT_OF_RUNS.get(words, words)
    earlier = found is not None and found < FORMAT
    if found is not None and "training" in parts:  # what runs did that did not say so yet
        training.setdefault("smoothness", 0.0)
        training.setdefault("bandwidth", 0.0)
    for part in (values, network, training):
        for name in [name for name in part if name in renamed.SETTINGS]:
            if not earlier:
                raise ConfigError(f"{where}: {name!r} is called {renamed.SETTINGS[name]!r} now")
            part[renamed.SETTINGS[name]] = part.pop(name)
        for name in part.keys() & renamed.VALUES.keys() if earlier else ():
            if isinstance(part[name], str | bool):
                part[name] = renamed.VALUES[name].get(part[name], part[name])
    task = str(values.get("task"))
    if values.get("network") is None or "network" in parts:
        _complete(network, task, earlier)
        values |= {"network": network} if network else {}
    if task in renamed.TASKS:
        values["task"] = renamed.TASKS[task]
    return values


def _complete(network: dict[str, Any], task: str, earlier: bool) -> None:
    """Say which network the task had, and its version where a file of before named none; the paper's have one only."""
    if task in NETWORKS and "architecture" not in network and network.get("network", "classifier") == "classifier":
        network["network"] = NETWORKS[task]
    if earlier:
        network.setdefault("architecture", 1)
    if network.get("architecture") == 1 and network.get("network") in UNCHANGED:
        del network["architecture"]


def _count_elements(network: dict[str, Any]) -> None:
    """Of O(2), rotations were counted, and all of them came reflected too."""
    for name in ("n_h", *(["n_k"] if network.get("kernel") in ("dense", "atrous") else [])):
        if network.get("group") == "o2" and type(network.get(name)) is int:
            network[name] *= 2
