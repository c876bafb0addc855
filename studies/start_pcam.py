"""PCam patches from smooth and from flat initial spectra, with torch's AdamW and with steps in modes."""

from liespline.lab.sweep.study import Study
from studies.recipes import PCAM, TISSUE, VALID_AUC, flat_over_smooth, starts

NETWORKS = starts({"o2-12": PCAM["o2-12"]})

STUDY = Study(
    task="pcam",
    data="A subset of PCam, recompressed as JPEG: 12,782 patches to train on and 6,389 others to score, no test part.",
    protocol="O(2) with 24 elements, 110,000 parameters; the AUC of the last five epochs.",
    recipe={**TISSUE, "optimiser": "adamw", "epochs": 12},
    networks=NETWORKS,
    seeds=5,
    rows=flat_over_smooth(NETWORKS, VALID_AUC),
)
