"""One's own images or volumes with masks: which class is each pixel of?"""

from __future__ import annotations

from pathlib import Path

from ..data.listing import given_splits
from ..data.mask_split import MaskSplit
from ..data.pairs import NEEDED, load_pairs
from ..data.scans import Reading
from ..data.split import SPLITS
from ..data.table import read_table
from ..networks import multiple_of
from ..settings import Config, ConfigError
from .base import Task
from .defaults import DEFAULTS, OPTIONS
from .fitting import parts_of
from .masks import Segmentation


def load(config: Config, split: str) -> MaskSplit:
    """A split of the folder, or all of it."""
    fold, folds = parts_of(config)
    found = load_pairs(
        Path(str(config.data)), split, Reading(config.intensity_range, config.spacing),
        labels=Path(config.labels) if config.labels else None, patch=config.patch, fold=fold, folds=folds,
    )  # fmt: skip
    multiple = multiple_of(config.network)
    if any(side % multiple for side in found.space):
        raise ConfigError(
            f"patch = {found.space[0]}: the network halves {len(config.network.widths) - 1} times; "
            f"take a multiple of {multiple}"
        )
    return found


def splits(config: Config) -> tuple[str, ...]:
    """The splits that folders or a table name; else all three are dealt out."""
    given = set(given_splits(Path(str(config.data)), NEEDED))
    if config.labels is not None:
        given = set(read_table(Path(config.labels), Path(str(config.data)) / "images").splits or ())
    return tuple(split for split in SPLITS if split in given) or SPLITS


TASK = Task(
    defaults=DEFAULTS["segment"],
    data_help="a folder with folders images and masks in it, with files of equal names",
    load_split=load,
    whole=True,
    splits=splits,
    dimensions=(2, 3),
    options=OPTIONS["segment"],
    networks=("unet",),
    objective=lambda config, signature: Segmentation(
        signature.classes, config.training.class_weights, config.training.label_smoothing
    ),
)
