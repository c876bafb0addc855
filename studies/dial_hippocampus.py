"""The dial on hippocampi, which all lie alike: SO(3), with a frame bias, restricted, about one axis, and none."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import PLAIN, SO3, Changes

NETWORKS: dict[str, Changes] = {
    "breaking": {**SO3, "breaking": True},
    "plain": PLAIN,
    "axial": {"group": "axial", "elements": 8, "kernel": "local", "basis": 3},
    "plain-rotated": {**PLAIN, "augment": "rotate+intensity"},
    "so3": SO3,
    "restricted": {**SO3, "restrict": "3=axial"},
}
OURS = [name for name in NETWORKS if not name.startswith("plain")]

STUDY = Study(
    task="studies.folds:SEGMENT",
    data="Medical Decathlon, task 4, its training part: 200 volumes in folders images and masks, five folds.",
    protocol="U-Nets of 60,000 parameters, 2,000 steps; SO(3) has 24 rotations and is pointwise on the group. Dice of "
    "whole volumes on their own grid, as they lie and rotated.",
    recipe={"epochs": 57, "parameters": 60_000, "precision": "bf16-mixed"},
    networks=NETWORKS,
    seeds=5,
    rows=[
        *(Row(ours, "plain", measure="Dice per image") for ours in OURS),
        *(Row(ours, "plain-rotated", measure="Dice, rotated") for ours in OURS),
    ],
)
