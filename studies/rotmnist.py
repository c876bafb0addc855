"""Rotated MNIST: 16 orientations beside the plain network."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import DIGITS, FULL, MODES, PLAIN, ROTATED, budgets, shares

LONGER = {**PLAIN, "epochs": 168}  # about the time of ours

STUDY = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="16 orientations beside the plain network, a million parameters each.",
    recipe=DIGITS,
    networks={**FULL, "so2-16-modes": {**FULL["so2-16"], **MODES}, "plain-long": LONGER},
    seeds=5,
    rows=[
        Row("so2-16", "plain"),
        Row("so2-16-modes", "so2-16"),
        Row("so2-16", "plain-long"),
    ],
)

# Rotated MNIST with elastic deformations in training.
ELASTIC = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Elastic deformations in training.",
    recipe={**DIGITS, "augment": "affine+elastic"},
    networks=FULL,
    seeds=5,
    rows=[Row("so2-16", "plain")],
)

# Rotated MNIST: the mean over three networks, trained with elastic deformations.
ENSEMBLE = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Elastic deformations in training. The predictions of three networks are averaged.",
    recipe={**DIGITS, "augment": "affine+elastic", "ensemble": 3, "parameters": 3_000_000},
    networks=FULL,
    seeds=5,
    rows=[Row("so2-16", "plain")],
)

# Rotated MNIST, each digit rotated about its own centre of mass: no offset tells which way was up.
NO_CUE = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Rotated about their own mass: no offset tells what was up.",
    recipe={**DIGITS, "rotation_centre": "mass"},
    networks=FULL,
    rows=[Row("so2-16", "plain")],
)

# Rotated MNIST with at most 30,000 parameters.
SMALL = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="At most 30,000 parameters.",
    recipe=DIGITS,
    networks=budgets(29_000),
    rows=[Row("so2-16-29k", "plain-29k")],
)

# Rotated MNIST: error against parameters.
PARAMETERS = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="Error against parameters.",
    recipe=DIGITS,
    networks=budgets(29_000, 120_000, 480_000),
    rows=[
        Row("so2-16-29k", "plain-29k"),
        Row("so2-16-120k", "plain-120k"),
        Row("so2-16-480k", "plain-480k"),
    ],
)

# Rotated MNIST with 10 %, 25 % and all of the labels.
LABELS = Study(
    task="rotmnist",
    data=ROTATED,
    protocol="10 %, 25 % and all of 10,000 labels; the best epoch is that of 2,000 validation digits.",
    recipe={**DIGITS, "train_on_val": False},
    networks=shares(FULL, {0.1: (224, 224), 0.25: (112, 112), 1.0: (56, 56)}),
    rows=[
        Row("so2-16-10", "plain-10"),
        Row("so2-16-25", "plain-25"),
        Row("so2-16-100", "plain-100"),
    ],
)
