"""Rotated MNIST: error against parameters."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, ROTATED, budgets

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Error against parameters.",
    recipe=DIGITS,
    networks=budgets(29_000, 120_000, 480_000),
    rows=[
        Row("so2-16-29k", "plain-29k"),
        Row("so2-16-120k", "plain-120k", "rotated MNIST, 120,000 parameters", short=False, error=True),
        Row("so2-16-480k", "plain-480k"),
    ],
)
