"""Scaled MNIST and Fashion-MNIST: three and four scales beside the plain network."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import CHAIN, LOCAL, MODES, PLAIN, RECIPE

SCALED = {**RECIPE, **CHAIN, "transformation": "scaled"}
SLANTED = {"parameters": 360_000, "augment": "zoom-shear", "epochs": 24}
LOCAL_SCALES = {"group": "scale", "elements": 3, "basis": 3, **LOCAL}
POINTWISE_SCALES = {"group": "scale", "elements": 4, "basis": 1, "kernel": "pointwise"}

# Scaled MNIST: three and four scales beside the plain network.
DIGITS = Study(
    task="mnist",
    data="MNIST's files: digits scaled to 0.3 to 1 of their size are generated, 10,000 to train on, 50,000 to test.",
    protocol="Four scales with pointwise kernels, and three with local ones, beside the plain network.",
    recipe={**SCALED, **SLANTED},
    networks={"scale-4-pointwise": POINTWISE_SCALES, "scale-3": LOCAL_SCALES, "plain": PLAIN},
    rows=[
        Row("scale-4-pointwise", "plain"),
        Row("scale-3", "plain"),
    ],
)

CLOTHES = (
    "Fashion-MNIST's files: clothes scaled to 0.3 to 1 of their size are generated, 10,000 to train on, 50,000 to test."
)

# Scaled Fashion-MNIST: local kernels on three scales beside the plain network.
FASHION = Study(
    task="mnist",
    data=CLOTHES,
    protocol="Three scales with local kernels beside the plain network.",
    recipe={**SCALED, **SLANTED},
    networks={"scale-3": LOCAL_SCALES, "plain": PLAIN},
    rows=[Row("scale-3", "plain")],
)

# Scaled Fashion-MNIST, reflected at random in training: four scales beside the plain network.
FASHION_MIRRORED = Study(
    task="mnist",
    data=CLOTHES,
    protocol="Reflected at random in training.",
    recipe={**SCALED, **MODES, "parameters": 480_000, "augment": "mirror+zoom-shear", "epochs": 60},
    networks={"scale-4-pointwise": POINTWISE_SCALES, "plain": PLAIN},
    rows=[Row("scale-4-pointwise", "plain")],
)
