"""MNIST or Fashion-MNIST, each image moved by a matrix of its own: turned, shrunk, both, or any near the identity."""

from pathlib import Path

from ..data import mnist
from .augmentations import MOVES
from .base import Task
from .defaults import DEFAULTS, OPTIONS

TASK = Task(
    defaults=DEFAULTS["mnist"],
    data_help="the folder with the four idx files of MNIST or Fashion-MNIST (train-images-idx3-ubyte.gz, …)",
    check=lambda path, config: mnist.check(path),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, config.moved),
    augmentations=MOVES,
    options=OPTIONS["mnist"],
)
