"""A subset of PCam in the largest disc: O(2) predicts with the mean over two grids."""

from liespline.lab.sweep.study import Row, Study
from studies.pcam_disc import NETWORKS
from studies.recipes import SUBSET, TISSUE, VALID_AUC

STUDY = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters, in the largest disc alone; O(2) predicts with the mean over two grids.",
    recipe=TISSUE,
    networks={"o2-12-100": {**NETWORKS["o2-12-100"], "tta_grids": 2}, "plain-100": NETWORKS["plain-100"]},
    rows=[Row("o2-12-100", "plain-100", "all labels, the mean over two grids", VALID_AUC, short=False)],
)
