"""MNIST trained upright, tested under affine maps near the identity: SIM(2) and GL(2) beside the plain network."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import CHAIN, LOCAL, PLAIN, RECIPE

# Steps about these elements tile affNIST's ranges: rotations of 27°, shears among them, zooms and squeezes of e^0.2.
# Grid jitter within a step trains the networks on all of it, although the digits are upright.
NEAR = {"max_angle": 27, "grid_jitter": 1.0}

STUDY = Study(
    task="mnist",
    data="MNIST's files: upright digits anywhere in 40² to train on; test digits are transformed as affNIST's are.",
    protocol="SIM(2) and GL(2) near the identity beside the plain network, trained upright, tested transformed.",
    recipe={**RECIPE, **CHAIN, "transformation": "affine", "parameters": 60_000, "augment": "none", "epochs": 10},
    networks={
        "gl2-3x2x2x1": {**NEAR, **LOCAL, "group": "gl2", "elements": (3, 2, 2, 1)},
        "sim2-3x2": {**NEAR, **LOCAL, "group": "sim2", "elements": (3, 2), "basis": (3, 3)},
        "sim2-3x2-pointwise": {**NEAR, "kernel": "pointwise", "group": "sim2", "elements": (3, 2)},
        "plain": PLAIN,
    },
    rows=[
        Row("gl2-3x2x2x1", "plain"),
        Row("sim2-3x2", "plain"),
        Row("sim2-3x2-pointwise", "plain"),
    ],
)
