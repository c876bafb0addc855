"""Accuracy against angle: digits that come with scikit-learn, networks trained upright and trained rotated."""

from liespline.lab.sweep.study import Row, Study
from studies.networks import RELATIVE
from studies.recipes import PLAIN, TESTED_ROTATED

EIGHT, ROTATED = {"elements": 8}, {"augment": "rotate"}

STUDY = Study(
    task="digits",
    data="1,797 digits that come with scikit-learn, as the command deals them: 450 to test on.",
    protocol="The demonstration's networks: eight orientations beside the plain network of equal parameter count, "
    "trained upright, trained on rotated digits, and that for the time that eight orientations take.",
    recipe={
        "accelerator": "cpu", "widths": (4, 6, 12, 16), "epochs": 20, "dropout": 0.0, "schedule": "one-cycle",
        "parameters": 39_770,
    },
    networks={
        "so2-8": EIGHT, "plain": PLAIN, "plain-augmented": {**PLAIN, **ROTATED},
        "so2-8-augmented": {**EIGHT, **ROTATED}, "plain-equal-time": {**PLAIN, **ROTATED, "epochs": 92},
    },
    seeds=5,
    rows=[
        Row("so2-8", "plain", measure=TESTED_ROTATED), Row("so2-8-augmented", "plain-augmented"),
        Row("so2-8-augmented", "plain-augmented", measure=TESTED_ROTATED),
        Row("so2-8", "plain-augmented", measure=TESTED_ROTATED),
        Row("so2-8-augmented", "plain-augmented", measure=RELATIVE),
    ],
)  # fmt: skip
