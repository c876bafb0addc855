"""One's own images, one folder per class."""

from functools import partial
from pathlib import Path

from ..data import DataError, Split, images
from ..data.labelled import load_labelled
from ..data.split import ALL, SPLITS
from ..data.table import read_table
from ..settings import Config, ConfigError, written
from .base import Task
from .defaults import DEFAULTS, OPTIONS
from .labelled import by_labels
from .own import fitting, parts_of, with_notes

NETWORK = DEFAULTS["images"].network


def load(config: Config, split: str) -> Split:
    """A split of the folder."""
    if config.labels is None:
        found = images.load(Path(str(config.data)), split, side_of(config), *parts_of(config))
    else:
        kind, (fold, folds) = config.label_type, parts_of(config)
        found = load_labelled(
            Path(str(config.data)), Path(config.labels), split, kind=kind, size=side_of(config), fold=fold,
            folds=folds,
        )  # fmt: skip
    return with_notes(NETWORK, config, found) if split == "train" else found


def side_of(config: Config) -> int | None:
    """The side of the squares that images become."""
    if isinstance(config.size, tuple):
        raise ConfigError(f"size = {written(config.size)}: images become squares; give one number")
    return config.size


def check(path: Path, config: Config) -> list[str]:
    """Every problem that would stop training."""
    if config.labels is None:
        return images.check(path, side_of(config))
    try:
        load(config, ALL)
    except DataError as error:
        return error.problems
    return []


def transparent(path: Path) -> list[str]:
    """A remark on the images of class folders that are not opaque everywhere."""
    try:
        return images.transparent(path)
    except DataError:  # the images of a table lie in any folders
        return []


def splits(config: Config) -> tuple[str, ...]:
    """A table that says which split an image is of may leave testing out."""
    if config.labels is None:
        return SPLITS
    table = read_table(Path(config.labels), Path(str(config.data)), config.label_type)
    return SPLITS if table.splits is None else tuple(split for split in SPLITS if split in table.splits)


TASK = Task(
    defaults=DEFAULTS["images"],
    data_help="a folder with one folder of PNG, JPEG or TIFF files per class, or any folder with --labels",
    check=check,
    remarks=transparent,
    whole=lambda config: load(config, ALL),
    splits=splits,
    load_split=load,
    options=OPTIONS["images"],
    fitting=partial(fitting, NETWORK),
    objective=by_labels,
)
