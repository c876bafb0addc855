"""A subset of PCam in the largest disc: the mean over two networks."""

from liespline.lab.sweep.study import Row, Study
from studies.pcam_disc import NETWORKS
from studies.recipes import SUBSET, TISSUE, VALID_AUC

STUDY = Study(
    task="pcam",
    data=SUBSET,
    protocol="At most 120,000 parameters, in the largest disc alone. The predictions of two networks are averaged.",
    recipe={**TISSUE, "ensemble": 2},
    networks={name: {**NETWORKS[name], "parameters": 103_000} for name in ("o2-12-100", "plain-100")},
    rows=[Row("o2-12-100", "plain-100", "all labels, ensemble of two", VALID_AUC, short=False)],
)
