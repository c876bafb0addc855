"""Five folds of the training and validation parts of a set, seed s testing on fold s mod 5: the test parts stay sealed.

What settles a recipe must not be seen in the tables of `when-it-pays`; and over five folds every sample tests once.
"""

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from liespline.lab.data.listing import deal
from liespline.lab.data.split import Split
from liespline.lab.data.store import fingerprint
from liespline.lab.settings import Config
from liespline.lab.tasks import segment, volumes

FOLDS = 5


def of_file(config: Config, split: str) -> Split:
    """A split of a file in MedMNIST's layout, dealt from its training and validation parts; copies stay together."""
    images, labels, marks = _opened(Path(str(config.data)))
    classes = [str(label) for label in np.unique(labels)]
    names = [f"volume {row}" for row in range(len(labels))]
    dealt = deal(names, labels, None, marks, config.seed % FOLDS, FOLDS)
    rows = np.flatnonzero([own == split for own in dealt])
    return Split(images, labels[rows], classes, rows=rows, names=names)


@lru_cache(maxsize=1)
def _opened(path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[str]]:
    with np.load(path) as arrays:
        images, labels = (
            np.concatenate([arrays[f"{part}_{kind}"] for part in ("train", "val")]) for kind in ("images", "labels")
        )
    return images, labels.reshape(-1).astype(np.int64), [fingerprint(image) for image in images]


def in_fold(config: Config) -> Config:
    """The configuration with its seed's fold."""
    return config.updated(folds=FOLDS, fold=config.seed % FOLDS + 1)


VOLUMES = replace(volumes.TASK, defaults=replace(volumes.TASK.defaults, task=f"{__name__}:VOLUMES"), load_split=of_file)
SEGMENT = replace(
    segment.TASK,
    defaults=replace(segment.TASK.defaults, task=f"{__name__}:SEGMENT"),
    load_split=lambda config, split: segment.load(in_fold(config), split),
)
