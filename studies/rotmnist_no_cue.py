"""Rotated MNIST, each digit rotated about its own centre of mass: no offset tells which way was up."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, FULL, ROTATED

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Rotated about their own mass: no offset tells what was up.",
    recipe={**DIGITS, "rotation_centre": "mass"},
    networks=FULL,
    rows=[Row("so2-16", "plain", "rotated MNIST, rotated about their mass", short=False, error=True)],
)
