"""Scaled digits from smooth and from flat initial spectra: local beside pointwise kernels on four scales."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import LOCAL, flat_over_smooth, starts
from studies.scaled_digits import POINTWISE_SCALES, SCALED, SLANTED

FOUR_LOCAL = {"group": "scale", "elements": 4, "basis": 3, **LOCAL}
NETWORKS = starts({"local": FOUR_LOCAL, "pointwise": POINTWISE_SCALES})

STUDY = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: digits scaled to 0.3 to 1 are generated, 10,000 to train on, and 8,000 spare ones to test on.",
    protocol="Four scales, local and pointwise kernels.",
    recipe={**SCALED, **SLANTED},
    networks=NETWORKS,
    seeds=5,
    rows=[
        *flat_over_smooth(NETWORKS),
        *(Row(name, name.replace("local", "pointwise")) for name in NETWORKS if name.startswith("local")),
    ],
)
