"""The U-Nets that are compared, each of about the same number of weights."""

from typing import Any

from torch import nn

from liespline import O2, SO2, SO3, Trivial, models, uniform

NETWORKS: dict[str, dict[str, Any]] = {
    "plain": {"grid": lambda: uniform(Trivial(2), 1)},
    "se2": {"grid": lambda: uniform(SO2(), 8), "kernel": "local", "n_k": 3},
    "o2": {"grid": lambda: uniform(O2(), 16)},
    "plain3": {"grid": lambda: uniform(Trivial(3), 1), "widths": (16, 24, 32)},
    "se3": {"grid": lambda: uniform(SO3(), 12), "widths": (16, 24, 32), "kernel": "local", "n_k": 7},
}


def make(options: dict[str, Any], channels: int, classes: int, weights: int) -> nn.Module:
    """The U-Net with these options and about so many weights."""
    more = {key: value for key, value in options.items() if key != "grid"}
    return models.unet(channels, classes, options["grid"](), parameters=weights, **more)
