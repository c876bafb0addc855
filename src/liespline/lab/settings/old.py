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
    values = dict(values)
    found = values.pop("format", None)
    network, training = values.get("network"), values.get("training")
    if isinstance(training, dict):
        training = values["training"] = {name: value for name, value in training.items() if name not in renamed.GONE}
    if found is None and isinstance(training, dict) and training.keys() >= _BY_A_RUN:
        found = 1
    if found not in (None, *range(1, FORMAT + 1)) or isinstance(found, bool):
        raise ConfigError(f"{where}: is of format {shown(found)}; this version reads up to {FORMAT}: update it")
    if found == 1:
        if isinstance(network, dict):
            values["network"] = _elements_counted(network)
        if isinstance(training, dict) and isinstance(name := training.get("augment"), str):
            values["training"] = training | {"augment": _AUGMENT_OF_RUNS.get(name, name)}
    earlier = found is not None and found < FORMAT
    if earlier:
        values = _renamed(values)
        for part in ("network", "training"):
            if isinstance(values.get(part), dict):
                values[part] = _renamed(values[part])
    else:
        _refuse_old_words(values, where)
    return _of_a_version(_placed(values), earlier)


def _renamed(part: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of one part by their names and values of today."""
    named = {renamed.SETTINGS.get(name, name): value for name, value in part.items()}
    for name in named.keys() & renamed.VALUES.keys():
        if isinstance(named[name], (str, bool)):
            named[name] = renamed.VALUES[name].get(named[name], named[name])
    return named


def _refuse_old_words(values: Mapping[str, Any], where: str) -> None:
    for part in (values, values.get("network"), values.get("training")):
        for name in part if isinstance(part, Mapping) else ():
            if name in renamed.SETTINGS:
                raise ConfigError(f"{where}: {name!r} is called {renamed.SETTINGS[name]!r} now")


def _placed(values: dict[str, Any]) -> dict[str, Any]:
    """With the network that the task had, and the task where it is now."""
    task, network = str(values.get("task")), values.get("network")
    if task in NETWORKS and (network is None or (isinstance(network, dict) and "architecture" not in network)):
        words = dict(network or {})
        if words.get("network", "classifier") == "classifier":
            values = {**values, "network": {**words, "network": NETWORKS[task]}}
    return {**values, "task": renamed.TASKS[task]} if task in renamed.TASKS else values


def _of_a_version(values: dict[str, Any], earlier: bool) -> dict[str, Any]:
    """With the version of the network where a file of before named none; the paper's are the same in all."""
    network = values.get("network")
    network = dict(network) if isinstance(network, dict) else {}
    if earlier:
        network.setdefault("architecture", 1)
    if network.get("architecture") == 1 and network.get("network") in UNCHANGED:
        del network["architecture"]
    return {**values, "network": network} if network else values


def _elements_counted(network: Mapping[str, Any]) -> dict[str, Any]:
    """Of O(2), rotations were counted, and all of them came reflected too."""
    doubled = ["n_h", *(["n_k"] if network.get("kernel") in ("dense", "atrous") else [])]
    counted = [name for name in doubled if network.get("group") == "o2" and type(network.get(name)) is int]
    return {**network, **{name: 2 * network[name] for name in counted}}
