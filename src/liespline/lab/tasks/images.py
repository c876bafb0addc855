"""One's own images, one folder per class."""

from functools import partial
from pathlib import Path

from ..data import Split, images
from ..data.augment import Plain, Rotate
from ..data.split import ALL
from ..settings import Config
from .base import Task
from .defaults import DEFAULTS
from .own import fitting_network, with_notes

NETWORK = DEFAULTS["images"].network


def load(config: Config, split: str) -> Split:
    """A split of the folder."""
    found = images.load(Path(str(config.data)), split, config.size)
    return with_notes(NETWORK, config, found) if split == "train" else found


TASK = Task(
    defaults=DEFAULTS["images"],
    data_help="a folder with one folder of PNG, JPEG or TIFF files per class",
    check=lambda path, config: images.check(path, config.size),
    prepared=lambda pixels, config: pixels if config.size is None else images.square(pixels, config.size),
    remarks=images.transparent,
    whole=lambda config: images.load(Path(str(config.data)), ALL, config.size),
    load_split=load,
    augmentations={"none": lambda config: Plain(), "rotate": lambda config: Rotate()},
    network=partial(fitting_network, NETWORK),
)
