"""One's own images, one folder per class."""

from pathlib import Path

from ..data import Split, images
from ..data.split import SPLITS
from ..data.table import read_table
from ..settings import Config, ConfigError, written
from .base import Task, named_splits, table_and_fold
from .defaults import DEFAULTS, OPTIONS


def load(config: Config, split: str) -> Split:
    """A split of the folder."""
    if isinstance(config.size, tuple):
        raise ConfigError(f"size = {written(config.size)}: images become squares; give one number")
    return images.load(Path(str(config.data)), split, config.size, kind=config.label_type, **table_and_fold(config))


def splits(config: Config) -> tuple[str, ...]:
    """Those that a table names."""
    if config.labels is None:
        return SPLITS
    return named_splits(read_table(Path(config.labels), Path(str(config.data)), config.label_type).splits)


TASK = Task(
    defaults=DEFAULTS["images"],
    data_help="a folder with one folder of PNG, JPEG or TIFF files per class, or any folder with --labels",
    own=True,
    splits=splits,
    load_split=load,
    options=OPTIONS["images"],
)
