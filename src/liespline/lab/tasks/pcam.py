"""The paper's first experiment: tumour tissue in PatchCamelyon, rotations (section 4, tab. GCNNPCAM)."""

from pathlib import Path

from torch import nn

from ... import models
from ..data import pcam
from ..data.augment import Plain
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


TASK = Task(
    defaults=DEFAULTS["pcam"],
    data_help="the folder with the official camelyonpatch_level_2_split_….h5 files",
    check=lambda path, config: pcam.check(path),
    load_split=lambda config, split: pcam.load(Path(str(config.data)), split),
    augmentations={
        "rot90": lambda config: pcam.Augment(),
        "no-rot90": lambda config: pcam.Augment(rot90=False),
        "turns": lambda config: pcam.AnyTurn(),
        "none": lambda config: Plain(),
    },
    prepared=lambda pixels, config: pcam.cropped(pixels),
    splits=lambda config: pcam.available(Path(str(config.data))),
    epoch_images=2048 * 32,  # the scripts' epoch: a quarter of the official training set
    network=network,
)
