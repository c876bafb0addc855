"""The paper's first experiment: tumour tissue in PatchCamelyon, rotations (section 4, tab. GCNNPCAM)."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from torch import nn

from ... import models
from ..data import pcam
from ..data.augment import Plain
from ..settings import Config
from .base import Task
from .defaults import DEFAULTS
from .networks import Signature


def network(config: Config, signature: Signature) -> nn.Module:
    """The network of the table with the configuration's N_h, N_k and kernel; group none is its 2-D column."""
    choice = config.network
    n_h = 1 if choice.group == "none" else choice.n_h
    n_k = 1 if choice.group == "none" else choice.n_k or n_h
    return models.pcam(n_h, n_k, choice.kernel)


Pairs = tuple[tuple[int, int], ...]
DENSE = ((1, 1), (4, 4), (8, 8), (12, 12), (16, 16), (8, 4), (12, 4), (12, 8), (16, 4), (16, 8), (16, 12))
ATROUS = ((8, 4), (12, 4), (12, 8), (16, 4), (16, 8), (16, 12))
LOCAL = ((8, 3), (8, 5), (12, 3), (12, 5), (16, 3), (16, 5))
UNTURNED = ((1, 1), (12, 12))

PAPER = {"dense": DENSE, "atrous": ATROUS, "local": LOCAL, "unturned": UNTURNED}
EQUAL = ((12, 12), (8, 8), (4, 4), (1, 1))
# Long runs first, so that several at once end together.
SHORT = {"local": ((16, 3),), "atrous": ((16, 8),), "dense": ((16, 8), *EQUAL), "unturned": EQUAL}


def runs_of(kinds: Mapping[str, Pairs], base: Config) -> dict[str, Config]:
    """Runs by kernel, N_h and N_k; `unturned` ones are dense and train without quarter turns."""
    runs = {}
    for kernel, pairs in kinds.items():
        for n_h, n_k in pairs:
            how = {"kernel": "dense", "augment": "no-rot90"} if kernel == "unturned" else {"kernel": kernel}
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
        "none": lambda config: Plain(),
    },
    prepared=lambda pixels, config: pcam.cropped(pixels),
    splits=lambda config: pcam.available(Path(str(config.data))),
    # The paper's 25 runs, and eleven that show most of its findings.
    sets={"paper": partial(runs_of, PAPER), "short": partial(runs_of, SHORT)},
    network=network,
)
