"""MNIST and Fashion-MNIST from the official files, each image transformed by a matrix of its own; and what suits it."""

from dataclasses import replace
from pathlib import Path

from liespline.lab.settings import Config
from liespline.lab.sweep.study import Row, Study
from liespline.lab.tasks.base import Task
from liespline.lab.tasks.defaults import GENERAL
from studies.data import mnist
from studies.networks import RELATIVE
from studies.recipes import CHAIN, LOCAL, RECIPE, ROTATED, Changes

_USUAL = {"elements": 12, "widths": (16, 24, 32, 48), "epochs": 30, "batch_size": 128, "lr": 0.02}
VARIANT = {"image": "rotated", "mass": "rotated about mass"}

# Rotated by any angle: 10,000 + 2,000 to train on, 50,000 to test.
ROTMNIST = Task(
    defaults=Config(f"{__name__}:ROTMNIST").updated(**_USUAL),
    data_help="the folder with MNIST's four idx files (train-images-idx3-ubyte.gz, …)",
    check=lambda path, config: mnist.check(path),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, VARIANT[config.rotation_centre]),
    options=(*GENERAL, "rotation_centre"),
)

# The same, each seed with a deal of its own of the 62,000 digits: for what is published.
DEALT = Task(
    defaults=Config(f"{__name__}:DEALT").updated(**_USUAL),
    data_help=ROTMNIST.data_help,
    check=ROTMNIST.check,
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, "rotated", config.seed + 1),
    options=GENERAL,
)

# The same digits on 29×29 points about the same centre.
DEALT_ON_29 = replace(
    DEALT,
    defaults=replace(DEALT.defaults, task=f"{__name__}:DEALT_ON_29"),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, "rotated on 29", config.seed + 1),
)

# The same, tested on the 8,000 digits that no deal has: for what settles a recipe.
SPARE = Task(
    defaults=Config(f"{__name__}:SPARE").updated(**_USUAL),
    data_help=ROTMNIST.data_help,
    check=ROTMNIST.check,
    load_split=lambda config, split: (
        mnist.outside(Path(str(config.data)), config.transformation)
        if split == "test"
        else mnist.load(Path(str(config.data)), split, config.transformation)
    ),
    options=(*GENERAL, "transformation"),
)

# As --transformation says: rotated, scaled, both, or by any matrix near the identity.
MNIST = Task(
    defaults=Config(f"{__name__}:MNIST").updated(**_USUAL),
    data_help="the folder with the four idx files of MNIST or Fashion-MNIST (train-images-idx3-ubyte.gz, …)",
    check=lambda path, config: mnist.check(path),
    load_split=lambda config, split: mnist.load(Path(str(config.data)), split, config.transformation),
    options=(*GENERAL, "transformation"),
)

SO2 = {"elements": 16, "kernel": "local", "basis": 5, "separable": True}

# ReLU, SiLU and smooth networks on rotated digits, scored on 8,000 that no table scores.
SMOOTH = Study(
    task="studies.digits:SPARE",
    data=f"{ROTATED} Scored on the 8,000 that are left.",
    protocol="100,000 parameters on 16 orientations; activations alone differ, `smooth` also interpolates along H.",
    recipe={**RECIPE, **CHAIN, "architecture": 2, "epochs": 16, "train_on_val": True, "parameters": 100_000,
            "augment": "rotate"},
    networks={"relu": SO2, "silu": {**SO2, "activation": "silu"}, "smooth": {**SO2, "smooth": True}},
    rows=[
        Row(ours, "relu", measure)
        for ours in ("silu", "smooth") for measure in ("accuracy", RELATIVE)
    ],
)  # fmt: skip

OF_BISPECTRUM = {"project": "bispectrum"}

# Of 16 orientations, the maximum is kept in the end, or the bispectrum of each channel, or of all.
BISPECTRUM = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: rotated digits are generated, 12,000 to train on, and 8,000 spare ones to test on.",
    protocol="SO(2) with 16 orientations, 200,000 parameters, or half of the channels of `max`.",
    recipe={**RECIPE, "elements": 16, "kernel": "local", "parameters": 200_000, "epochs": 20, "train_on_val": True,
            "widths": (12, 16, 18, 18, 24, 32)},
    networks={
        "max": {}, "bispectrum": OF_BISPECTRUM, "joint": {"project": "joint-bispectrum"},
        "max-half": {"parameters": 50_000}, "bispectrum-half": {**OF_BISPECTRUM, "parameters": 60_000},
    },
    seeds=5,
    rows=[
        Row("bispectrum", "max"), Row("joint", "max"), Row("bispectrum-half", "max"),
        Row("bispectrum-half", "max-half"),
    ],
)  # fmt: skip

D16: Changes = {"group": "o2", "elements": 32}

# D16 all the way, and restricted to C16 from the fifth layer on, as E2CNN's best network is.
RESTRICT = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: rotated digits are generated, 12,000 to train on, and 8,000 spare ones to test on.",
    protocol="16 rotations and their reflections, 200,000 parameters: do the last two of six layers gain from telling "
    "a digit from its mirror image? `c16` never sees reflections.",
    recipe={**RECIPE, **CHAIN, **LOCAL, "separable": True, "parameters": 200_000, "epochs": 20, "train_on_val": True},
    networks={"d16-5c16": {**D16, "restrict": "4=so2"}, "d16": D16, "c16": {"group": "so2", "elements": 16}},
    seeds=5,
    rows=[Row("d16-5c16", "d16"), Row("d16-5c16", "c16")],
)
