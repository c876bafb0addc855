"""One's own images, one folder per class."""

from functools import partial
from pathlib import Path

from ..data import Split, images
from ..data.split import SPLITS
from ..data.table import read_table
from ..settings import Config, ConfigError, written
from .base import Task
from .defaults import DEFAULTS, OPTIONS
from .fitting import fitting, parts_of, remarks
from .labelled import by_labels

NETWORK = DEFAULTS["images"].network


def load(config: Config, split: str) -> Split:
    """A split of the folder."""
    labels = Path(config.labels) if config.labels else None
    return images.load(
        Path(str(config.data)), split, side_of(config), *parts_of(config), labels=labels, kind=config.label_type
    )


def side_of(config: Config) -> int | None:
    """The side of the squares that images become."""
    if isinstance(config.size, tuple):
        raise ConfigError(f"size = {written(config.size)}: images become squares; give one number")
    return config.size


def splits(config: Config) -> tuple[str, ...]:
    """A table that says which split an image is of may leave testing out."""
    if config.labels is None:
        return SPLITS
    table = read_table(Path(config.labels), Path(str(config.data)), config.label_type)
    return SPLITS if table.splits is None else tuple(split for split in SPLITS if split in table.splits)


TASK = Task(
    defaults=DEFAULTS["images"],
    data_help="a folder with one folder of PNG, JPEG or TIFF files per class, or any folder with --labels",
    whole=True,
    splits=splits,
    load_split=load,
    options=OPTIONS["images"],
    fitting=partial(fitting, NETWORK),
    remarks=partial(remarks, NETWORK),
    objective=by_labels,
)
