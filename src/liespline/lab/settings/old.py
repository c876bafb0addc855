"""What configurations of version 0.2 called otherwise."""

from __future__ import annotations

from typing import Any

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


def renewed(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a configuration in today's words."""
    task, network = str(values.get("task")), values.get("network")
    if task in NETWORKS and (network is None or (isinstance(network, dict) and "architecture" not in network)):
        words = dict(network or {})
        if words.get("network", "classifier") == "classifier":
            values = {**values, "network": {**words, "network": NETWORKS[task]}}
    return {**values, "task": TASKS[task]} if task in TASKS else values
