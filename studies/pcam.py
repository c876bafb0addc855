"""A subset of PCam: O(2) beside the plain network, the mean over a square; all and 10 % of the labels."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import PCAM, SUBSET, TISSUE, VALID_AUC, shares

STUDY = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters; all and 10 % of the labels.",
    recipe=TISSUE,
    networks=shares(PCAM, {1.0: (12, 12), 0.1: (60, 60)}),
    rows=[
        Row("o2-12-100", "plain-100", "the mean over a square, all labels: validation AUC", VALID_AUC, short=False),
        Row("o2-12-10", "plain-10", "the same, a tenth of the labels", VALID_AUC, short=False),
    ],
)
