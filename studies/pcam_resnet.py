"""ResNet-18's plan beside the ready ResNet of 0.2, at equal parameters, on PCam patches that no table scores."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import OLD, SEALED, TISSUE, VALID_AUC

O2 = {"group": "o2", "elements": 24, "circular_mask": True, "parameters": 116_000}
NEW = {**O2, "architecture": 2, "kernel": "local", "basis": 3}

STUDY = Study(
    task="studies.paper.pcam:PCAM",
    data=SEALED,
    protocol="117,000 parameters, in the largest disc alone. `new` has four stages, `three` the same without the last: "
    "their first stages are 2 and 4 channels wide. `even` and `mild` have three stages of equal and of slowly growing "
    "widths, `two` those of the old one.",
    recipe={**TISSUE, "epochs": 8},
    networks={
        "old": {**O2, **OLD, "kernel": "dense", "basis": 16, "parameters": 110_000},
        "new": NEW,
        "three": {**NEW, "widths": (8, 8, 16, 16, 32, 32)},
        "even": {**NEW, "widths": (16, 16, 16, 16, 16, 16)},
        "mild": {**NEW, "widths": (16, 16, 24, 24, 32, 32)},
        "two": {**NEW, "widths": (16, 16, 32, 32)},
    },
    seeds=5,
    rows=[Row(name, "old", measure=VALID_AUC) for name in ("new", "three", "even", "mild", "two")],
)
