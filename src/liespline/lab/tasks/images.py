"""One's own images, one folder a class."""

from pathlib import Path

from ..config import Config, Network, Training
from ..data import images
from ..data.augment import Plain, Rotate
from .base import Task

TASK = Task(
    defaults=Config(
        task="images",
        network=Network(group="so2", n_h=8, widths=(12, 16, 24, 32, 48)),
        training=Training(epochs=30, batch=32, lr=0.01),
    ),
    data_help="a folder with one folder of PNG, JPEG or TIFF files a class",
    check=lambda path, config: images.check(path, config.size),
    load_split=lambda config, split: images.load(Path(str(config.data)), split, config.size),
    augmentations={"none": lambda config: Plain(), "rotate": lambda config: Rotate()},
)
