"""Fourteen of the paper's networks on PCam, which decide each of its claims by one pair at least."""

from liespline.lab.sweep.study import Study
from studies.pcam_paper import networks

# A sweep that is stopped early leaves whole comparisons: each network comes with the one it is compared to.
CHOSEN = (
    ("dense", 1, 1), ("dense", 12, 12), ("unturned", 1, 1), ("unturned", 12, 12),
    ("dense", 8, 8), ("dense", 16, 8), ("atrous", 16, 8),
    ("dense", 4, 4), ("dense", 16, 4), ("atrous", 16, 4), ("local", 16, 3), ("local", 16, 5),
    ("dense", 16, 16), ("local", 12, 3),
)  # fmt: skip

STUDY = Study(
    task="pcam",
    data="PCam's six official files.",
    protocol="Fourteen of the paper's networks, with its settings.",
    networks=networks(CHOSEN),
)
