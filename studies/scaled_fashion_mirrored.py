"""Scaled Fashion-MNIST, reflected at random in training: four scales beside the plain network."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import MODES, PLAIN
from studies.scaled_digits import POINTWISE_SCALES, SCALED
from studies.scaled_fashion import CLOTHES

STUDY = Study(
    task="mnist",
    data=CLOTHES,
    protocol="Reflected at random in training.",
    recipe={**SCALED, **MODES, "parameters": 480_000, "augment": "mirror+zoom-shear", "epochs": 60},
    networks={"scale-4-pointwise": POINTWISE_SCALES, "plain": PLAIN},
    rows=[Row("scale-4-pointwise", "plain", "scaled Fashion-MNIST", published="89.62")],
)
