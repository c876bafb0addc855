"""The paper's 25 networks on PCam patches whose test slides nothing was tuned on."""

from liespline.lab.sweep.study import Study
from studies.pcam_paper import STUDY as PAPER
from studies.recipes import FAST

STUDY = Study(
    task="studies.paper.pcam:PCAM",
    data="A subset of PCam, recompressed as JPEG: 12,782 patches to train on, 6,389 other ones to pick the epoch by, "
    "and the 3,000 of the official validation part, from other slides, to test on once.",
    protocol="The paper's settings, but 40 epochs of the subset, in batches of 128 at a learning rate of 0.04 that is "
    "halved after every 12 % of the epochs. Augmented as in the paper, with quarter turns except where `unturned`. One "
    "network, one test copy; the epoch with the best validation accuracy.",
    recipe={"epochs": 40, "batch_size": 128, "lr": 0.04, **FAST},
    networks=PAPER.networks,
    seeds=3,
)
