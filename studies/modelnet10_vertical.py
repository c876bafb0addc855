"""ModelNet10 in 34³, trained upright with rotations about the vertical axis, scored in any orientation."""

from liespline.lab.sweep.study import Row, Study
from studies.modelnet10_34 import BOXED
from studies.recipes import IN_BOX, PLAIN, SHAPES, SO3, TESTED_ROTATED

STUDY = Study(
    task="volumes",
    data=BOXED,
    protocol="Trained upright, rotated about the vertical axis alone; scored upright and in random orientation.",
    recipe={**SHAPES, **IN_BOX, "epochs": 60, "augment": "rotate-z+zoom-shear"},
    networks={"so3-24": {**SO3, "grid_jitter": 1.0}, "plain": PLAIN},
    rows=[
        Row("so3-24", "plain", "ModelNet10, trained upright with vertical rotations, tested rotated", TESTED_ROTATED),
        Row("so3-24", "plain", "the same, tested upright", "accuracy, upright"),
        Row("so3-24", "plain", "the same, tested upright, cropped alike", "accuracy, cropped", short=False),
    ],
)
