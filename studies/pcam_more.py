"""A subset of PCam: a quarter of the labels, and the paper's networks trained by the recipe of the others."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import PCAM, PLAIN, SUBSET, TISSUE, shares

PAPER = {"network": "classifier", "epochs": 16}

STUDY = Study(
    task="pcam",
    data=SUBSET,
    protocol="A quarter of the labels, and the paper's networks with all.",
    recipe=TISSUE,
    networks={
        **shares(PCAM, {0.25: (40, 40)}),
        "paper-12": {**PAPER, "elements": 12, "basis": 12},
        "paper-2d": {**PLAIN, **PAPER},
    },
    rows=[Row("o2-12-25", "plain-25"), Row("paper-12", "paper-2d")],
)
