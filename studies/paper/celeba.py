"""The paper's second experiment: facial landmarks in CelebA, scales (section 4, tab. GCNNCelebA).

liespline train studies/paper/celeba.py:CELEBA --data DIR
"""

from collections.abc import Iterable
from pathlib import Path

from liespline.lab.data.augment import Augmentation, Zoom
from liespline.lab.settings import Config
from liespline.lab.tasks.base import Task
from liespline.lab.tasks.objectives import Landmarks

from ..data import celeba
from . import RECIPE

SCALES = {"paper": tuple(2 ** (i / 2) for i in range(5)), "released": (1.0, 1.6, 2.0, 2.8, 4.0)}
"""The fixed scales of the five 2-D networks, by preset."""


def paper_runs(base: Config) -> dict[str, Config]:
    """The paper's runs: two to five scales with N_k = 1, 3 and N_h; 2-D networks at five scales, with zoom or not.

    A sweep that is stopped early leaves whole comparisons: all kernels of most scales first, then of fewer, then 2-D.
    """
    scales = (5, 3, 2, 4)
    networks = [(*kind, n_h) for n_h in scales for kind in (("local", 3), ("dense", n_h), ("local", 1))]
    return networks_of(networks, base) | plain_runs(base, range(1, 6))


def short_runs(base: Config) -> dict[str, Config]:
    """The paper's twelve networks of several scales, and the 2-D network at the scales 1 and 2."""
    runs = paper_runs(base)
    plain = plain_runs(base, (3, 1))
    return {name: run for name, run in runs.items() if run.network.group != "none"} | plain


def networks_of(networks: Iterable[tuple[str, int, int]], base: Config) -> dict[str, Config]:
    """Runs by kernel, N_k and N_h."""
    return {f"{kernel}-{n_h}-{n_k}": base.updated(kernel=kernel, n_h=n_h, n_k=n_k) for kernel, n_k, n_h in networks}


def plain_runs(base: Config, numbers: Iterable[int]) -> dict[str, Config]:
    """2-D networks at the scales of these numbers, 1 to 5, each without zoom and with it."""
    runs = {}
    for number in numbers:
        scale = SCALES[base.preset][number - 1]
        plain = base.updated(group="none", n_h=1, n_k=1, scale=scale)
        runs[f"plain-{number}"] = plain
        runs[f"plain-{number}-zoom"] = plain.updated(augment="zoom")
    return runs


CELEBA = Task(
    defaults=Config(f"{__name__}:CELEBA").updated(
        network="celeba", group="scale", n_h=5, n_k=3, kernel="local", batch=8, **RECIPE
    ),
    data_help="a folder made by `python -m studies.data.celeba_prepare SRC OUT`",
    check=lambda path, config: celeba.check(path),
    load_split=lambda config, split: celeba.load(Path(str(config.data)), split),
    augmentations={"none": lambda config: Augmentation(), "zoom": lambda config: Zoom(config.preset)},
    sets={"paper": paper_runs, "short": short_runs},
    options=("scale", "preset"),
    networks=("celeba",),
    objective=lambda config, signature: Landmarks(celeba.BLUR[config.preset]),
)
