"""Rotated and scaled MNIST, 5,000 digits: SIM(2) and SO(2) beside the plain network."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import CHAIN, LOCAL, MODES, PLAIN, RECIPE

MOVED = {"transformation": "rotated-scaled", "parameters": 80_000, "augment": "affine", "epochs": 30, "batch_size": 64}

STUDY = Study(
    task="mnist",
    data="MNIST's files: digits rotated by any angle and scaled to 0.3 to 1 of their size are generated, "
    "5,000 to train on, 50,000 to test.",
    protocol="8 rotations with 3 scales, and 16 rotations, beside the plain network.",
    recipe={**RECIPE, **CHAIN, **MOVED},
    networks={
        "sim2-8x3": {"group": "sim2", "elements": (8, 3), "basis": (3, 3), **LOCAL, **MODES},
        "so2-16": {"group": "so2", "elements": 16, "kernel": "dense"},
        "plain": PLAIN,
    },
    rows=[
        Row("sim2-8x3", "plain"),
        Row("so2-16", "plain"),
    ],
)
