"""ModelNet10 in 30³: SO(3) beside the plain network, trained upright or on rotated shapes."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import MODES, SHAPES, TESTED_ROTATED, volumes

STUDY = Study(
    task="volumes",
    data="ModelNet10, voxels of 30³, a split of our own.",
    protocol="Trained upright, or on rotated volumes; scored upright and in random orientation.",
    recipe={**SHAPES, "epochs": 60, "widths": (12, 16, 48, 96)},
    networks=volumes(MODES),
    rows=[
        Row("so3-24", "plain"),
        Row(
            "so3-24-rotated",
            "plain-rotated",
            "ModelNet10 in 30³, trained and tested rotated",
            TESTED_ROTATED,
            short=False,
        ),
        Row("so3-24", "plain-rotated", "ours trained upright, plain rotated", TESTED_ROTATED, short=False),
        Row("so3-24", "plain-rotated", "the same, tested upright, cropped alike", "accuracy, cropped", short=False),
        Row("so3-24", "plain-rotated", "the same, tested upright, whole", "accuracy, upright", short=False),
    ],
)
