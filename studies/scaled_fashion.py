"""Scaled Fashion-MNIST: local kernels on three scales beside the plain network."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import PLAIN
from studies.scaled_digits import LOCAL_SCALES, SCALED, SLANTED

CLOTHES = (
    "Fashion-MNIST's files: clothes scaled to 0.3 to 1 of their size are generated, 10,000 to train on, 50,000 to test."
)

STUDY = Study(
    task="mnist",
    data=CLOTHES,
    protocol="Three scales with local kernels beside the plain network.",
    recipe={**SCALED, **SLANTED},
    networks={"scale-3": LOCAL_SCALES, "plain": PLAIN},
    rows=[Row("scale-3", "plain", "the same, no reflections, local kernels", published="89.62", short=False)],
)
