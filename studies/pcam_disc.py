"""A subset of PCam, seen in the largest disc alone: O(2) beside the plain network; all, 10 % and 25 % of the labels."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import IN_DISC, SUBSET, TISSUE, VALID_AUC, shares

# O(2) fits few labels in fewer epochs, then overfits: the epochs of a tenth were settled on training patches outside of
# it (pcam_tenth_held_out), those of a quarter lie between.
NETWORKS = shares(IN_DISC, {1.0: (12, 12), 0.1: (30, 60), 0.25: (24, 36)})

STUDY = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters, in the largest disc alone; all, 10 % and 25 % of the labels.",
    recipe=TISSUE,
    networks=NETWORKS,
    rows=[
        Row("o2-12-100", "plain-100", "PCam subset, all labels: validation AUC", VALID_AUC),
        Row("o2-12-10", "plain-10", "the same, a tenth of the labels", VALID_AUC),
        Row("o2-12-25", "plain-25", "a quarter of the labels", VALID_AUC, short=False),
    ],
)
