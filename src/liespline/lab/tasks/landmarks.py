"""One's own landmarks: the paper's CelebA network and metric on any folder with a table of points."""

from pathlib import Path

from ..data import DataError, Split
from ..data.augment import Augmentation, Zoom
from ..data.files import size_words
from ..settings import Config, ConfigError
from .base import Task, table_and_fold
from .defaults import DEFAULTS, OPTIONS
from .images import load_points


def load(config: Config, split: str) -> Split:
    if config.labels is None:
        raise ConfigError("task landmarks needs --labels: a table with the columns file, NAME_row, NAME_column, …")
    found = load_points(Path(str(config.data)), split=split, **table_and_fold(config))
    if any(side % 2 for side in found.space):
        raise DataError(f"{config.data}: images of {size_words(found.space)}; the network halves them: take even sides")
    return found


TASK = Task(
    defaults=DEFAULTS["landmarks"],
    data_help="a folder of PNG, JPEG or TIFF images of one size, with --labels",
    own=True,
    load_split=load,
    augmentations={"none": lambda config: Augmentation(), "zoom": lambda config: Zoom()},
    options=OPTIONS["landmarks"],
    networks=("celeba",),
)
