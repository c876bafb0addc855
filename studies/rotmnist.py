"""Rotated MNIST, 12,000 digits: 16 orientations beside the plain network of a million parameters."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, FULL, MODES, PLAIN, ROTATED

LONGER = {**PLAIN, "epochs": 168}  # about the time of ours

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="16 orientations beside the plain network, a million parameters each.",
    recipe=DIGITS,
    networks={**FULL, "so2-16-modes": {**FULL["so2-16"], **MODES}, "plain-long": LONGER},
    seeds=5,
    rows=[
        Row("so2-16", "plain", "rotated MNIST, 12,000 to train on: errors", published="0.59", error=True),
        Row("so2-16-modes", "so2-16"),
        Row("so2-16", "plain-long"),
    ],
)
