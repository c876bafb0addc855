"""A network as the seeds of a study share it, and its name in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..settings import Config, Network, written
from ..settings.old import SHORT
from ..tasks import find_task

PAPER = ("pcam", "celeba")
"""The paper's own experiments."""


@dataclass(frozen=True)
class Variant:
    """One network with its augmentation: what the seeds of a study share."""

    network: Network
    augment: str


def variant_of(config: Config) -> Variant:
    """The network of a run, written alike however it was asked for."""
    net = config.network
    if net.group == "none" or (net.n_h == 1 and net.n_k in (None, 1)):
        net = replace(net, group="none", kernel="dense", n_h=1, n_k=1)
    elif SHORT.get(config.task) in PAPER or net.kernel in ("dense", "atrous"):
        net = replace(net, n_k=net.n_k or net.n_h)
    return Variant(replace(net, scale=round(net.scale, 2)), config.training.augment)


def name_of(task: str, variant: Variant) -> str:
    """A network in words: `dense (12, 4)` has N_h = 12 and N_k = 4; what differs from the task's defaults follows."""
    net = variant.network
    if net.group == "none":
        name = plain_name(task) + (f" at scale {net.scale:g}" if task == "celeba" else "")
    else:
        sizes = ", ".join(written(n) for n in (net.n_h, net.n_k) if n)
        name = f"{net.kernel} ({sizes})"
    return name + unusual(task, variant)


def plain_name(task: str) -> str:
    """The network without a group, as the paper calls it; other tasks may have volumes."""
    return "2-D" if task in PAPER else "no group"


def unusual(task: str, variant: Variant) -> str:
    """What differs from the task's defaults, apart from the sampling of the group and the kernels on it."""
    usual, net = find_task(task).defaults, variant.network
    words: list[str] = [] if net.group in ("none", usual.network.group) else [net.group]
    if net.group != "none" and net.scale != 1:
        words.append(f"from scale {net.scale:g}")
    for key in ("kernel_size", "stride", "widths", "weights"):
        if getattr(net, key) != getattr(usual.network, key):
            words.append(f"{key} {getattr(net, key)}")
    if variant.augment != usual.training.augment:
        words.append(variant.augment)
    return "".join(f", {word}" for word in words)
