"""The paper's first experiment: tumour tissue in PatchCamelyon, rotations (section 4, tab. GCNNPCAM).

liespline train studies/paper/pcam.py:PCAM --data DIR
"""

from functools import partial
from pathlib import Path
from typing import Any

from liespline.lab.data.augment import Augmentation
from liespline.lab.settings import Config
from liespline.lab.tasks.base import Task
from liespline.lab.tasks.defaults import SORTED

from ..data import pcam
from . import RECIPE

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


PCAM = Task(
    defaults=Config(f"{__name__}:PCAM").updated(network="pcam", n_h=12, n_k=12, batch=32, augment="rot90", **RECIPE),
    data_help="the folder with the official camelyonpatch_level_2_split_….h5 files",
    check=lambda path, config: pcam.check(path),
    load_split=lambda config, split: pcam.load(Path(str(config.data)), split),
    augmentations={
        "rot90": lambda config: pcam.Augment(),
        "no-rot90": lambda config: pcam.Augment(rot90=False),
        "rotate": lambda config: pcam.AnyTurn(),
        "none": lambda config: Augmentation(),
    },
    splits=lambda config: pcam.available(Path(str(config.data))),
    # The paper's 25 runs, fourteen that decide each of its claims by one pair at least, and a pair of our own.
    sets={name: partial(runs_of, networks) for name, networks in SETS.items()},
    epoch_images=2048 * 32,  # the scripts' epoch: a quarter of the official training set
    options=(*SORTED, "preset"),
    networks=("pcam", "resnet"),
)
