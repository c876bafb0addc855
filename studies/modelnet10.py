"""ModelNet10: SO(3) beside the plain network."""

from liespline.lab.sweep.study import Row, Study
from studies.modelnet10_34 import BOXED
from studies.recipes import IN_BOX, MODES, PLAIN, SHAPES, SO3, TESTED_ROTATED, volumes

STUDY = Study(
    task="volumes",
    data="ModelNet10, voxels of 30³, a split of our own.",
    protocol="Trained upright, or on rotated volumes; scored upright and in random orientation.",
    recipe={**SHAPES, "epochs": 60, "widths": (12, 16, 48, 96)},
    networks=volumes(MODES),
    rows=[
        Row("so3-24", "plain"),
        Row("so3-24-rotated", "plain-rotated", TESTED_ROTATED),
        Row("so3-24", "plain-rotated", TESTED_ROTATED),
    ],
)

# ModelNet10 in 34³, trained upright with rotations about the vertical axis, scored in any orientation.
VERTICAL = Study(
    task="volumes",
    data=BOXED,
    protocol="Trained upright, rotated about the vertical axis alone; scored upright and in random orientation.",
    recipe={**SHAPES, **IN_BOX, "epochs": 60, "augment": "rotate-z+zoom-shear"},
    networks={"so3-24": {**SO3, "grid_jitter": 1.0}, "plain": PLAIN},
    rows=[Row("so3-24", "plain", TESTED_ROTATED)],
)
