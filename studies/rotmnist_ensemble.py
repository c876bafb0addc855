"""Rotated MNIST: the mean over three networks, trained with elastic deformations."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, FULL, ROTATED

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Elastic deformations in training. The predictions of three networks are averaged.",
    recipe={**DIGITS, "augment": "affine+elastic", "ensemble": 3, "parameters": 3_000_000},
    networks=FULL,
    seeds=5,
    rows=[
        Row("so2-16", None, "the same, ensemble of three", published="0.59", error=True),
        # The same networks, tested once more by a script of commit 950defe: no sweep makes these runs.
        Row("so2-16", None, "the same, test-time augmentation by eight copies", published="0.59", error=True,
            results="rotmnist_copies"),
        Row("so2-16", "plain"),
    ],
)  # fmt: skip
