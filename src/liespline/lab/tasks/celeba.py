"""The paper's second experiment: facial landmarks in CelebA, scales (section 4, tab. GCNNCelebA)."""

from pathlib import Path

from torch import nn

from ... import models
from ..data import celeba
from ..data.augment import Plain, Zoom
from ..settings import Config
from .base import Task
from .defaults import DEFAULTS
from .grids import of_the_paper
from .networks import Signature
from .objectives import Landmarks


def network(config: Config, signature: Signature) -> nn.Module:
    """The network of the table with the configuration's N_h, N_k, kernel and preset; group none is its 2-D column."""
    choice = config.network
    n_h, n_k = of_the_paper(config, "scale")
    return models.celeba(n_h, n_k, choice.kernel, scale=choice.scale, preset=config.preset)


TASK = Task(
    defaults=DEFAULTS["celeba"],
    data_help="a folder made by `liespline data prepare celeba SRC OUT`",
    check=lambda path, config: celeba.check(path),
    load_split=lambda config, split: celeba.load(Path(str(config.data)), split),
    augmentations={"none": lambda config: Plain(), "zoom": lambda config: Zoom(config.preset)},
    network=network,
    objective=lambda config, signature: Landmarks(celeba.BLUR[config.preset]),
)
