"""ModelNet10 in a box of 34³: SO(3) beside the plain network, trained upright or on rotated shapes."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import IN_BOX, MODES, SHAPES, TESTED_ROTATED, volumes

# The ball of 30³ cuts a fiftieth of the voxels or more off a third of all shapes, that of 34³ off 3 % of them.
BOXED = "ModelNet10, voxels of 30³ in the middle of 34³, a split of our own."

STUDY = Study(
    task="volumes",
    data=BOXED,
    protocol="Trained upright, or on rotated volumes; scored upright and in random orientation.",
    recipe={**SHAPES, "epochs": 60, **IN_BOX},
    networks=volumes(MODES),
    rows=[
        Row("so3-24", "plain"),
        Row("so3-24-rotated", "plain-rotated", TESTED_ROTATED),
        Row("so3-24", "plain-rotated", TESTED_ROTATED),
    ],
)
