"""Rotated MNIST, generated from the official files: 10,000 + 2,000 to train on, 50,000 to test."""

from pathlib import Path

from ..data import mnist
from .augmentations import MOVES
from .base import Task
from .defaults import DEFAULTS, OPTIONS

VARIANT = {"image": "rotated", "mass": "rotated about mass"}

TASK = Task(
    defaults=DEFAULTS["rotmnist"],
    data_help="the folder with MNIST's four idx files (train-images-idx3-ubyte.gz, …)",
    check=lambda path, config: mnist.check(path),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, VARIANT[config.about]),
    augmentations=MOVES,
    options=OPTIONS["rotmnist"],
)
