"""One's own volumes, in MedMNIST's layout."""

from functools import partial
from pathlib import Path

from ..data import Split, volumes
from ..settings import Config
from .augmentations import MOVES
from .base import Task
from .defaults import DEFAULTS
from .own import fitting_network, with_notes

NETWORK = DEFAULTS["volumes"].network


def load(config: Config, split: str) -> Split:
    """A split of the file."""
    found = volumes.load(Path(str(config.data)), split)
    return with_notes(NETWORK, config, found) if split == "train" else found


TASK = Task(
    defaults=DEFAULTS["volumes"],
    data_help="an .npz file with train_images, train_labels, val_…, test_… (MedMNIST's layout)",
    check=lambda path, config: volumes.check(path),
    load_split=load,
    augmentations=MOVES,
    network=partial(fitting_network, NETWORK),
)
