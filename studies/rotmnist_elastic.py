"""Rotated MNIST with elastic deformations in training."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, FULL, ROTATED

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Elastic deformations in training.",
    recipe={**DIGITS, "augment": "affine+elastic"},
    networks=FULL,
    seeds=5,
    rows=[Row("so2-16", "plain", "the same, with elastic deformation", published="0.59", error=True)],
)
