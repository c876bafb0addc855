"""Hippocampi in MR volumes, by the command with its defaults: the plain network beside SO(3)."""

from liespline.lab.sweep.study import Study
from studies.front import Front
from studies.recipes import OLD

STUDY = Study(
    task="segment",
    data="Medical Decathlon, task 4: 200 volumes in folders images and masks, 142 to train on, 29 to pick the epoch by "
    "and 29 to test on, as the command deals them.",
    protocol="The defaults of `liespline train segment`, 30 epochs: no augmentation, widths 8 to 24, so that the "
    "networks have other numbers of parameters. Dice of whole volumes, the mean of front and back.",
    recipe={**OLD, "epochs": 30, "augment": "none"},
    networks={"so3": {"group": "so3"}, "plain": {"group": "none"}},
    seeds=3,
    rows=[Front("so3", "plain", "Dice per image", "hippocampi, unrotated, 30 epochs: Dice")],
)
