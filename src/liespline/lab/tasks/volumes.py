"""One's own volumes, in MedMNIST's layout."""

from functools import partial
from pathlib import Path

from ..data import Split, volumes
from ..data.augment import Plain, Rotate
from ..settings import Config, Network, Training
from .base import Task
from .own import fitting_network, with_notes

NETWORK = Network(group="so3", n_h=24, kernel="local", n_k=7, stride=2, widths=(6, 8, 12))


def load(config: Config, split: str) -> Split:
    """A split of the file."""
    found = volumes.load(Path(str(config.data)), split)
    return with_notes(NETWORK, config, found) if split == "train" else found


TASK = Task(
    defaults=Config(task="volumes", network=NETWORK, training=Training(epochs=20, batch=16, lr=0.01)),
    data_help="an .npz file with train_images, train_labels, val_…, test_… (MedMNIST's layout)",
    check=lambda path, config: volumes.check(path),
    load_split=load,
    augmentations={"none": lambda config: Plain(), "rotate": lambda config: Rotate()},
    network=partial(fitting_network, NETWORK),
)
