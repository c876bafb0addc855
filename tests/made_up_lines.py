"""Lines of results whose means and spreads are known beforehand."""

from collections.abc import Mapping, Sequence
from typing import Any

from studies.networks import Network, Results

NETWORK = {"group": "so2", "network": "classifier", "elements": 12, "kernel": "dense", "basis": 12, "kernel_size": 5}


def line(name: str, seed: int, scores: Mapping[str, float], **changed: Any) -> dict[str, Any]:
    """A finished run of three hundred test images, or what is changed of it by the names of its parts."""
    results = {"split": "test", "images": 300, "synthetic": False, "parameters": 12_345, "scores": dict(scores)}
    training = {"epochs": 12, "seconds": 59.6, "images_per_second": 4321.0, "memory_mib": 1.0, "valid": {}}
    environment = {"commit": "1234567890abcdef", "uncommitted": False, "machine": "Linux, GPU"}
    config = {"task": "pcam", "preset": "paper", "network": {**NETWORK, "scale": 1.0}, "training": {"augment": "rot90"}}
    parts = {"environment": environment, "config": config, "training": training, "results": {**results, "seconds": 60}}
    whole = {"study": "made_up", "network": name, "seed": seed, "finished": True}
    merged = {part: values | changed.get(part, {}) for part, values in parts.items()}
    return {**whole, **merged, **{key: value for key, value in changed.items() if key not in parts}}


def network(name: str, values: Sequence[float], **changed: Any) -> Network:
    """A network with one seed per accuracy."""
    runs = [line(name, seed, {"accuracy": value}, **changed) for seed, value in enumerate(values)]
    return Network(name, runs, "Linux, GPU")


def study(lines: Sequence[Mapping[str, Any]], **head: Any) -> Results:
    """A study with these runs."""
    return Results({"study": "made_up", "about": "Made up.", **head}, lines)
