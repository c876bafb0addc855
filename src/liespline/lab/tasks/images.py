"""One's own images, one folder a class."""

from functools import partial
from pathlib import Path

from ..data import Split, images
from ..data.augment import Plain, Rotate
from ..settings import Config, Network, Training
from .base import Task
from .own import fitting_network, with_notes

NETWORK = Network(group="so2", n_h=8, widths=(12, 16, 24, 32, 48))


def load(config: Config, split: str) -> Split:
    """A split of the folder."""
    found = images.load(Path(str(config.data)), split, config.size)
    return with_notes(NETWORK, config, found) if split == "train" else found


TASK = Task(
    # Small batches: some hundred steps even for a folder of sixty images.
    defaults=Config(task="images", network=NETWORK, training=Training(epochs=30, batch=8, lr=0.01)),
    data_help="a folder with one folder of PNG, JPEG or TIFF files a class",
    check=lambda path, config: images.check(path, config.size),
    load_split=load,
    augmentations={"none": lambda config: Plain(), "rotate": lambda config: Rotate()},
    network=partial(fitting_network, NETWORK),
)
