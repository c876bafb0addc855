"""The paper's (12, 12) network on PCam beside windows that hold their splines whole, at equal parameters."""

from liespline.lab.sweep.study import Study
from studies.pcam_paper import networks
from studies.recipes import FAST

STUDY = Study(
    task="pcam",
    data="PCam's files; ours are a subset, recompressed.",
    protocol="The paper's chain, and the same in windows of 7×7 with smooth halving in place of max pooling.",
    recipe={"epochs": 24, "batch_size": 128, "lr": 0.04, **FAST},
    networks=networks([("dense", 12, 12), ("whole", 12, 12)]),
)
