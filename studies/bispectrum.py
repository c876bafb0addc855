"""Rotated digits: of 16 orientations, the maximum is kept in the end, or the bispectrum of each channel, or of all."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import RECIPE

BISPECTRUM = {"project": "bispectrum"}

STUDY = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: rotated digits are generated, 12,000 to train on, and 8,000 spare ones to test on.",
    protocol="SO(2) with 16 orientations, 200,000 parameters, or half of the channels of `max`.",
    recipe={**RECIPE, "elements": 16, "kernel": "local", "parameters": 200_000, "epochs": 20, "train_on_val": True,
            "widths": (12, 16, 18, 18, 24, 32)},
    networks={
        "max": {}, "bispectrum": BISPECTRUM, "joint": {"project": "joint-bispectrum"},
        "max-half": {"parameters": 50_000}, "bispectrum-half": {**BISPECTRUM, "parameters": 60_000},
    },
    seeds=5,
    rows=[
        Row("bispectrum", "max"), Row("joint", "max"), Row("bispectrum-half", "max"),
        Row("bispectrum-half", "max-half"),
    ],
)  # fmt: skip
