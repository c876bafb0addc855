"""Rotated digits: D16 all the way, and restricted to C16 from the fifth layer on, as E2CNN's best network is."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import CHAIN, LOCAL, RECIPE, Changes

D16: Changes = {"group": "o2", "elements": 32}

STUDY = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: rotated digits are generated, 12,000 to train on, and 8,000 spare ones to test on.",
    protocol="16 rotations and their reflections, 200,000 parameters: do the last two of six layers gain from telling "
    "a digit from its mirror image? `c16` never sees reflections.",
    recipe={**RECIPE, **CHAIN, **LOCAL, "separable": True, "parameters": 200_000, "epochs": 20, "train_on_val": True},
    networks={"d16-5c16": {**D16, "restrict": "4=so2"}, "d16": D16, "c16": {"group": "so2", "elements": 16}},
    seeds=5,
    rows=[Row("d16-5c16", "d16"), Row("d16-5c16", "c16")],
)
