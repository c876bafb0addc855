"""Rotated MNIST with 10 %, 25 % and all of the labels."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, FULL, ROTATED, shares

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="10 %, 25 % and all of 10,000 labels; the best epoch is that of 2,000 validation digits.",
    recipe={**DIGITS, "train_on_val": False},
    networks=shares(FULL, {0.1: (224, 224), 0.25: (112, 112), 1.0: (56, 56)}),
    rows=[
        Row("so2-16-10", "plain-10", "rotated MNIST, 1,000 labels", short=False, error=True),
        Row("so2-16-25", "plain-25", "rotated MNIST, 2,500 labels", short=False, error=True),
        Row("so2-16-100", "plain-100"),
    ],
)
