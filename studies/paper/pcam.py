"""The paper's first experiment: tumour tissue in PatchCamelyon, rotations (section 4, tab. GCNNPCAM).

liespline train studies/paper/pcam.py:PCAM --data DIR
"""

from pathlib import Path

from liespline.lab.data.augment import Augmentation
from liespline.lab.settings import Config
from liespline.lab.tasks.base import Task
from liespline.lab.tasks.defaults import SORTED

from ..data import pcam
from . import RECIPE

PCAM = Task(
    defaults=Config(f"{__name__}:PCAM").updated(
        network="pcam", elements=12, basis=12, batch_size=32, augment="rot90", **RECIPE
    ),
    data_help="the folder with the official camelyonpatch_level_2_split_….h5 files",
    check=lambda path, config: pcam.check(path),
    load_split=lambda config, split: pcam.load(Path(str(config.data)), split),
    augmentations={
        "rot90": lambda config: pcam.Augment(),
        "no-rot90": lambda config: pcam.Augment(rot90=False),
        "rotate": lambda config: pcam.AnyTurn(),
        "none": lambda config: Augmentation(),
    },
    splits=lambda config: pcam.available(Path(str(config.data))),
    epoch_images=2048 * 32,  # the scripts' epoch: a quarter of the official training set
    options=(*SORTED, "preset"),
    networks=("pcam", "resnet"),
)
