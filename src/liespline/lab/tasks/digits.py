"""Handwritten digits that ship with scikit-learn: the first thing to try."""

from ..data import digits
from ..data.augment import Plain, Rotate
from ..settings import Config, Network, Training
from .base import Task

TASK = Task(
    defaults=Config(
        task="digits",
        network=Network(group="so2", n_h=8, widths=(6, 8, 12, 16)),
        training=Training(epochs=12, batch=32, lr=0.01),
    ),
    load_split=lambda config, split: digits.load(split),
    augmentations={"none": lambda config: Plain(), "rotate": lambda config: Rotate()},
)
