"""ModelNet10 in 30³: SO(3) beside the plain network, trained upright or on rotated shapes."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import MODES, SHAPES, volumes

STUDY = Study(
    task="volumes",
    data="ModelNet10, voxels of 30³, a split of our own.",
    protocol="Trained upright, or on rotated volumes; scored upright and in random orientation.",
    recipe={**SHAPES, "epochs": 60, "widths": (12, 16, 48, 96)},
    networks=volumes(MODES),
    rows=[
        Row("so3-24", "plain"),
        Row("so3-24-turned", "plain-turned", "ModelNet10 in 30³, turned", "accuracy, moved", short=False),
        Row("so3-24", "plain-turned", "ours learned upright, plain turned", "accuracy, moved", short=False),
        Row("so3-24", "plain-turned", "the same, upright, cut alike", "accuracy, cut", short=False),
        Row("so3-24", "plain-turned", "the same, upright, whole", "accuracy, as they lie", short=False),
    ],
)
