"""Rotated digits from smooth and from flat initial spectra, with torch's AdamW and with steps in modes."""

from liespline.lab.sweep.study import Study
from studies.recipes import MODES, RECIPE, STEPS, Changes, flat_over_smooth, starts

KERNELS: dict[str, Changes] = {
    "dense": {"kernel": "dense"},
    "local": {"kernel": "local", "basis": 5},
    "pointwise": {"kernel": "pointwise"},
}
NETWORKS = starts(KERNELS, {**STEPS, "smooth-modes": {**MODES, "smoothness": 0.25}})

STUDY = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: rotated digits are generated, 12,000 to train on, and 8,000 spare ones to test on.",
    protocol="SO(2) with 16 orientations, 200,000 parameters: which start, and with which steps?",
    recipe={**RECIPE, "elements": 16, "widths": (12, 16, 18, 18, 24, 32), "parameters": 200_000, "epochs": 20,
            "train_on_val": True},
    networks=NETWORKS,
    seeds=5,
    rows=flat_over_smooth(NETWORKS),
)  # fmt: skip
