"""The paper's first experiment: tumour tissue in PatchCamelyon, rotations (section 4, tab. GCNNPCAM)."""

from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from ... import models
from ..data import pcam
from ..data.augment import Augmentation
from ..settings import SETTINGS, Config, ConfigError
from .base import Task
from .defaults import DEFAULTS
from .grids import of_the_paper
from .networks import Signature, make_classifier


def network(config: Config, signature: Signature) -> nn.Module:
    """The network of the table with the configuration's N_h, N_k and kernel; group none is its 2-D column.

    With windows of 7×7 it is the same chain made for turns; or a residual network. Both halve with smoothing, and
    their windows hold their splines whole.
    """
    choice = config.network
    if choice.network == "resnet":
        return make_classifier(config, signature)
    if choice.kernel_size not in (5, 7):
        raise ConfigError(f"--kernel-size {choice.kernel_size}: the paper's network has 5, or 7 to hold splines whole")
    for name in ("separable", "widths", "weights", "disc", "dropout"):
        if config[name] != TASK.defaults[name]:
            option = SETTINGS[name].option
            raise ConfigError(f"{option} does nothing with the paper's network; leave it out, or say --network resnet")
    n_h, n_k = of_the_paper(config, "so2")
    return models.pcam(n_h, n_k, choice.kernel, kernel_size=choice.kernel_size)


Run = tuple[str, int, int]
"""Kernel, N_h and N_k; `unturned` is a dense kernel, trained without quarter turns, `whole` one of 7×7 windows."""
EQUAL = (1, 4, 8, 12, 16)
COARSE = ((8, 4), (12, 4), (12, 8), (16, 4), (16, 8), (16, 12))
PAPER: tuple[Run, ...] = (
    *(("dense", n, n) for n in EQUAL),
    *(("unturned", n, n) for n in (1, 12)),
    *((kernel, *pair) for pair in COARSE for kernel in ("dense", "atrous")),
    *(("local", n_h, n_k) for n_h in (8, 12, 16) for n_k in (3, 5)),
)
# A sweep that is stopped early leaves whole comparisons: each network comes with the one it is compared to.
SHORT: tuple[Run, ...] = (
    ("dense", 1, 1), ("dense", 12, 12), ("unturned", 1, 1), ("unturned", 12, 12),
    ("dense", 8, 8), ("dense", 16, 8), ("atrous", 16, 8),
    ("dense", 4, 4), ("dense", 16, 4), ("atrous", 16, 4), ("local", 16, 3), ("local", 16, 5),
    ("dense", 16, 16), ("local", 12, 3),
)  # fmt: skip

# What windows that hold their splines whole and smooth halving change, as many weights.
WHOLE: tuple[Run, ...] = (("dense", 12, 12), ("whole", 12, 12))
SETS = {"paper": PAPER, "short": SHORT, "whole": WHOLE}
OPTIONS: dict[str, dict[str, Any]] = {
    "unturned": {"kernel": "dense", "augment": "no-rot90"},
    "whole": {"kernel": "dense", "kernel_size": 7},
}


def runs_of(networks: tuple[Run, ...], base: Config) -> dict[str, Config]:
    """The runs of some networks, by kernel, N_h and N_k."""
    runs = {}
    for kernel, n_h, n_k in networks:
        how = OPTIONS.get(kernel, {"kernel": kernel})
        runs[f"{kernel}-{n_h}-{n_k}"] = base.updated(n_h=n_h, n_k=n_k, **how)
    return runs


TASK = Task(
    defaults=DEFAULTS["pcam"],
    data_help="the folder with the official camelyonpatch_level_2_split_….h5 files",
    check=lambda path, config: pcam.check(path),
    load_split=lambda config, split: pcam.load(Path(str(config.data)), split),
    augmentations={
        "rot90": lambda config: pcam.Augment(),
        "no-rot90": lambda config: pcam.Augment(rot90=False),
        "rotate": lambda config: pcam.AnyTurn(),
        "none": lambda config: Augmentation(),
    },
    prepared=lambda pixels, config: pcam.cropped(pixels),
    preparation=lambda config: {"crop": f"the middle of patches of {pcam.PATCH}×{pcam.PATCH}"},
    splits=lambda config: pcam.available(Path(str(config.data))),
    # The paper's 25 runs, fourteen that decide each of its claims by one pair at least, and a pair of our own.
    sets={name: partial(runs_of, networks) for name, networks in SETS.items()},
    epoch_images=2048 * 32,  # the scripts' epoch: a quarter of the official training set
    network=network,
)
