"""The paper's second experiment: facial landmarks in CelebA, scales (section 4, tab. GCNNCelebA).

liespline train studies/paper/celeba.py:CELEBA --data DIR
"""

from pathlib import Path

from liespline.lab.data.augment import Augmentation, Zoom
from liespline.lab.settings import Config
from liespline.lab.tasks.base import Task
from liespline.lab.tasks.objectives import Landmarks

from ..data import celeba
from . import RECIPE

CELEBA = Task(
    defaults=Config(f"{__name__}:CELEBA").updated(
        network="celeba", group="scale", elements=5, basis=3, kernel="local", batch_size=8, **RECIPE
    ),
    data_help="a folder made by `python -m studies.data.celeba_prepare SRC OUT`",
    check=lambda path, config: celeba.check(path),
    load_split=lambda config, split: celeba.load(Path(str(config.data)), split),
    augmentations={"none": lambda config: Augmentation(), "zoom": lambda config: Zoom(config.preset)},
    options=("scale", "preset"),
    networks=("celeba",),
    objective=lambda config, signature: Landmarks(celeba.BLUR[config.preset]),
)
