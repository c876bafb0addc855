"""What configurations of version 0.2 called otherwise."""

from __future__ import annotations

from typing import Any

NETWORKS = {"pcam": "pcam", "celeba": "celeba", "landmarks": "celeba", "segment": "unet"}
"""The network of a task, where the configuration only said: not a ResNet."""


def renewed(values: dict[str, Any]) -> dict[str, Any]:
    """The values of a configuration in today's words."""
    task, network = str(values.get("task")), values.get("network")
    if task in NETWORKS and (network is None or (isinstance(network, dict) and "architecture" not in network)):
        words = dict(network or {})
        if words.get("network", "classifier") == "classifier":
            values = {**values, "network": {**words, "network": NETWORKS[task]}}
    return values
