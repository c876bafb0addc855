"""The paper's second experiment: facial landmarks in CelebA, scales (section 4, tab. GCNNCelebA)."""

from collections.abc import Iterable
from pathlib import Path

from torch import nn

from ... import models
from ..data import celeba
from ..data.augment import Plain, Zoom
from ..settings import Config
from .base import Task
from .defaults import DEFAULTS
from .networks import Signature
from .objectives import Landmarks


def network(config: Config, signature: Signature) -> nn.Module:
    """The network of the table with the configuration's N_h, N_k, kernel and preset; group none is its 2-D column."""
    choice = config.network
    n_h = 1 if choice.group == "none" else choice.n_h
    n_k = 1 if choice.group == "none" else choice.n_k or n_h
    return models.celeba(n_h, n_k, choice.kernel, scale=choice.scale, preset=config.preset)


SCALES = tuple(2 ** (i / 2) for i in range(5))


def paper_runs(base: Config) -> dict[str, Config]:
    """The paper's runs: two to five scales with N_k = 1, 3 and N_h; 2-D networks at five scales, with zoom or not."""
    networks = [(*kind, n_h) for n_h in range(2, 6) for kind in (("local", 1), ("local", 3), ("dense", n_h))]
    return networks_of(networks, base) | plain_runs(base)


def short_runs(base: Config) -> dict[str, Config]:
    """Each of the table's five columns once, at the most scales it is used with, and all 2-D networks."""
    networks = (("local", 3, 5), ("local", 1, 5), ("dense", 5, 5), ("dense", 4, 4), ("dense", 2, 2))
    return networks_of(networks, base) | plain_runs(base)


def networks_of(networks: Iterable[tuple[str, int, int]], base: Config) -> dict[str, Config]:
    """Runs by kernel, N_k and N_h."""
    return {f"{kernel}-{n_h}-{n_k}": base.updated(kernel=kernel, n_h=n_h, n_k=n_k) for kernel, n_k, n_h in networks}


def plain_runs(base: Config) -> dict[str, Config]:
    """2-D networks at five scales, with zoom and without."""
    runs = {}
    for number, scale in enumerate(SCALES, 1):
        plain = base.updated(group="none", n_h=1, n_k=1, scale=scale)
        runs[f"plain-{number}"] = plain
        runs[f"plain-{number}-zoom"] = plain.updated(augment="zoom")
    return runs


TASK = Task(
    defaults=DEFAULTS["celeba"],
    data_help="a folder made by `liespline data prepare celeba SRC OUT`",
    check=lambda path, config: celeba.check(path),
    load_split=lambda config, split: celeba.load(Path(str(config.data)), split),
    augmentations={"none": lambda config: Plain(), "zoom": lambda config: Zoom(config.preset)},
    sets={"paper": paper_runs, "short": short_runs},
    network=network,
    objective=lambda config, signature: Landmarks(celeba.BLUR[config.preset]),
)
