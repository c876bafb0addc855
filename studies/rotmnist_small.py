"""Rotated MNIST with at most 30,000 parameters."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, ROTATED, budgets

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="At most 30,000 parameters.",
    recipe=DIGITS,
    networks=budgets(29_000),
    rows=[Row("so2-16-29k", "plain-29k", "rotated MNIST, 29,000 parameters", published="1.87", error=True)],
)
