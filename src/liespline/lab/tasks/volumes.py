"""One's own volumes, in MedMNIST's layout."""

from pathlib import Path

from ..config import Config, Network, Training
from ..data import volumes
from ..data.augment import Plain, Rotate
from .base import Task

TASK = Task(
    defaults=Config(
        task="volumes",
        network=Network(group="so3", n_h=24, kernel="local", n_k=7, stride=2, widths=(6, 8, 12)),
        training=Training(epochs=20, batch=16, lr=0.01),
    ),
    data_help="an .npz file with train_images, train_labels, val_…, test_… (MedMNIST's layout)",
    check=lambda path, config: volumes.check(path),
    load_split=lambda config, split: volumes.load(Path(str(config.data)), split),
    augmentations={"none": lambda config: Plain(), "rotate": lambda config: Rotate()},
)
