"""A subset of PCam in the largest disc with 13,000 parameters; 10 % and all of the labels."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import LOCAL, PLAIN, SUBSET, TISSUE, VALID_AUC, shares

# A ninth of the parameters: kernels, and the epochs of a tenth, were settled on training patches that no network was
# trained on (pcam_small_held_out).
FEW = {"circular_mask": True, "parameters": 13_000}
O2 = {**FEW, "group": "o2", "elements": 24, "basis": 5, "separable": True, **LOCAL}

STUDY = Study(
    task="pcam",
    data=SUBSET,
    protocol="13,000 parameters, in the largest disc alone; 10 % and all of the labels.",
    recipe=TISSUE,
    networks=shares({"o2-12": O2, "plain": {**PLAIN, **FEW}}, {0.1: (60, 120), 1.0: (24, 36)}),
    rows=[
        Row("o2-12-10", "plain-10", "a tenth of the labels, 13,000 parameters", VALID_AUC, short=False),
        Row("o2-12-100", "plain-100"),
    ],
)
