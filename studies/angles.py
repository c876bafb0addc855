"""Accuracy against angle: digits that come with scikit-learn, networks trained upright and trained rotated."""

from liespline.lab.sweep.study import Row, Study
from studies.front import Front
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
        Front("so2-8", "plain", TESTED_ROTATED, "scikit-learn's digits, trained upright, tested rotated"),
        Front("so2-8-augmented", "plain-augmented", TESTED_ROTATED, "the same, trained and tested rotated",
              timed="plain-equal-time"),
        Front("so2-8", "plain", "accuracy", "the same, trained and tested upright"),
        Row("so2-8", "plain-augmented", TESTED_ROTATED), Row("so2-8-augmented", "plain-augmented", RELATIVE),
    ],
)  # fmt: skip
