"""Small networks on upright digits, tested rotated: which start and which steps keep what training never showed."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import MODES, Changes, starts

SMOOTH: dict[str, Changes] = {f"modes-{s}": {**MODES, "smoothness": s} for s in (0.25, 0.5)}
NETWORKS = starts({"so2": {"elements": 8}}, {"adamw": {}, "modes": MODES, **SMOOTH})
ROTATED = "accuracy, transformed"

STUDY = Study(
    task="digits",
    data="1,797 digits that come with scikit-learn.",
    protocol="SO(2) with 8 orientations, as in the demonstration: trained upright, tested upright and rotated.",
    recipe={
        "widths": (4, 6, 12, 16),
        "epochs": 20,
        "dropout": 0.0,
        "schedule": "one-cycle",
    },
    networks=NETWORKS,
    seeds=5,
    rows=[Row(name, "so2-smooth-adamw", measure=ROTATED) for name in NETWORKS if name != "so2-smooth-adamw"],
)
