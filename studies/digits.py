"""MNIST and Fashion-MNIST from the official files, each image transformed by a matrix of its own."""

from pathlib import Path

from liespline.lab.settings import Config
from liespline.lab.tasks.base import Task
from liespline.lab.tasks.defaults import GENERAL

from .data import mnist

_USUAL = {"elements": 12, "widths": (16, 24, 32, 48), "epochs": 30, "batch_size": 128, "lr": 0.02}
VARIANT = {"image": "rotated", "mass": "rotated about mass"}

# Rotated by any angle: 10,000 + 2,000 to train on, 50,000 to test.
ROTMNIST = Task(
    defaults=Config(f"{__name__}:ROTMNIST").updated(**_USUAL),
    data_help="the folder with MNIST's four idx files (train-images-idx3-ubyte.gz, …)",
    check=lambda path, config: mnist.check(path),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, VARIANT[config.rotation_centre]),
    options=(*GENERAL, "rotation_centre"),
)

# The same, each seed with a deal of its own of the 62,000 digits: for what is published.
DEALT = Task(
    defaults=Config(f"{__name__}:DEALT").updated(**_USUAL),
    data_help=ROTMNIST.data_help,
    check=ROTMNIST.check,
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, "rotated", config.seed + 1),
)

# The same, tested on the 8,000 digits that no deal has: for what settles a recipe.
SPARE = Task(
    defaults=Config(f"{__name__}:SPARE").updated(**_USUAL),
    data_help=ROTMNIST.data_help,
    check=ROTMNIST.check,
    load_split=lambda config, split: (
        mnist.outside(Path(str(config.data)), config.transformation)
        if split == "test"
        else mnist.load(Path(str(config.data)), split, config.transformation)
    ),
    options=(*GENERAL, "transformation"),
)

# As --transformation says: rotated, scaled, both, or by any matrix near the identity.
MNIST = Task(
    defaults=Config(f"{__name__}:MNIST").updated(**_USUAL),
    data_help="the folder with the four idx files of MNIST or Fashion-MNIST (train-images-idx3-ubyte.gz, …)",
    check=lambda path, config: mnist.check(path),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, config.transformation),
    options=(*GENERAL, "transformation"),
)
