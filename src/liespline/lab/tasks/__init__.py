"""What can be trained: one file a task, with its data, defaults, augmentation and score together."""

from __future__ import annotations

import importlib

from ..settings import one_of
from .base import Task

SUMMARIES = {
    "digits": "handwritten digits that ship with scikit-learn, 8×8 up-sampled; no download",
    "rotmnist": "rotated MNIST, generated from the official MNIST files: 12,000 train, 50,000 test",
    "images": "your own images, one folder a class",
    "volumes": "your own volumes, an .npz file in MedMNIST's layout",
    "pcam": "PatchCamelyon tissue patches (paper, section 4)",
    "celeba": "facial landmarks on CelebA (paper, section 4)",
}


def find_task(name: str) -> Task:
    """The task of that name; its file is imported only now."""
    one_of("task", name, SUMMARIES)
    task: Task = importlib.import_module(f".{name}", __package__).TASK
    return task
