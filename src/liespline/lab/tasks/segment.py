"""One's own images or volumes with masks: which class is each pixel of?"""

from __future__ import annotations

from pathlib import Path

from ..data.listing import given_splits
from ..data.mask_split import MaskSplit
from ..data.pairs import NEEDED, load_pairs
from ..data.scans import Reading
from ..data.table import read_table
from ..networks import multiple_of
from ..settings import Config, ConfigError
from .base import Task, named_splits, table_and_fold
from .defaults import DEFAULTS, OPTIONS
from .masks import Segmentation


def load(config: Config, split: str) -> MaskSplit:
    """A split of the folder, or all of it."""
    reading = Reading(config.intensity_range, config.spacing)
    found = load_pairs(Path(str(config.data)), split, reading, patch=config.patch, **table_and_fold(config))
    multiple = multiple_of(config.network)
    if any(side % multiple for side in found.space):
        raise ConfigError(
            f"patch = {found.space[0]}: the network halves {len(config.network.widths) - 1} times; "
            f"take a multiple of {multiple}"
        )
    return found


def splits(config: Config) -> tuple[str, ...]:
    """Those that a table names, or folders."""
    if config.labels is None:
        return named_splits(tuple(given_splits(Path(str(config.data)), NEEDED)))
    return named_splits(read_table(Path(config.labels), Path(str(config.data)) / "images").splits)


TASK = Task(
    defaults=DEFAULTS["segment"],
    data_help="a folder with folders images and masks in it, with files of equal names",
    own=True,
    splits=splits,
    load_split=load,
    dimensions=(2, 3),
    options=OPTIONS["segment"],
    networks=("unet",),
    objective=lambda config, signature: Segmentation(
        signature.classes, config.training.class_weights, config.training.label_smoothing
    ),
)
