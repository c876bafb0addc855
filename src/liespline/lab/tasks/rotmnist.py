"""Rotated MNIST, generated from the official files: 10,000 + 2,000 to train on, 50,000 to test."""

from pathlib import Path

from ..data import mnist
from ..data.augment import Plain, Rotate
from ..settings import Config, Network, Training
from .base import Task

TASK = Task(
    defaults=Config(
        task="rotmnist",
        network=Network(group="so2", n_h=12, widths=(16, 24, 32, 48)),
        training=Training(epochs=30, batch=128, lr=0.02),
    ),
    data_help="the folder with MNIST's four idx files (train-images-idx3-ubyte.gz, …)",
    check=lambda path, config: mnist.check(path),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, "rotated"),
    augmentations={"none": lambda config: Plain(), "rotate": lambda config: Rotate()},
)
