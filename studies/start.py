"""Smooth and flat initial spectra of kernels, with torch's AdamW and with steps in modes."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import (
    LOCAL,
    MODES,
    RECIPE,
    SO3,
    STEPS,
    TESTED_ROTATED,
    TISSUE,
    VALID_AUC,
    Changes,
    flat_over_smooth,
    starts,
)
from studies.recipes import PCAM as TISSUE_NETWORKS
from studies.recipes import SHAPES as SHAPE_RECIPE
from studies.scaled import POINTWISE_SCALES, SLANTED
from studies.scaled import SCALED as SCALED_DIGITS

KERNELS: dict[str, Changes] = {
    "dense": {"kernel": "dense"},
    "local": {"kernel": "local", "basis": 5},
    "pointwise": {"kernel": "pointwise"},
}
OF_DIGITS = starts(KERNELS, {**STEPS, "smooth-modes": {**MODES, "smoothness": 0.25}})

# Rotated digits from smooth and from flat initial spectra, with torch's AdamW and with steps in modes.
DIGITS = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: rotated digits are generated, 12,000 to train on, and 8,000 spare ones to test on.",
    protocol="SO(2) with 16 orientations, 200,000 parameters: which start, and with which steps?",
    recipe={**RECIPE, "elements": 16, "widths": (12, 16, 18, 18, 24, 32), "parameters": 200_000, "epochs": 20,
            "train_on_val": True},
    networks=OF_DIGITS,
    seeds=5,
    rows=flat_over_smooth(OF_DIGITS),
)  # fmt: skip

OF_PCAM = starts({"o2-12": TISSUE_NETWORKS["o2-12"]})

# PCam patches from smooth and from flat initial spectra, with torch's AdamW and with steps in modes.
PCAM = Study(
    task="pcam",
    data="A subset of PCam, recompressed as JPEG: 12,782 patches to train on and 6,389 others to score, no test part.",
    protocol="O(2) with 24 elements, 110,000 parameters; the AUC of the last five epochs.",
    recipe={**TISSUE, "optimiser": "adamw", "epochs": 12},
    networks=OF_PCAM,
    seeds=5,
    rows=flat_over_smooth(OF_PCAM, VALID_AUC),
)

FOUR_LOCAL = {"group": "scale", "elements": 4, "basis": 3, **LOCAL}
OF_SCALED = starts({"local": FOUR_LOCAL, "pointwise": POINTWISE_SCALES})

# Scaled digits from smooth and from flat initial spectra: local beside pointwise kernels on four scales.
SCALED = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: digits scaled to 0.3 to 1 are generated, 10,000 to train on, and 8,000 spare ones to test on.",
    protocol="Four scales, local and pointwise kernels.",
    recipe={**SCALED_DIGITS, **SLANTED},
    networks=OF_SCALED,
    seeds=5,
    rows=[
        *flat_over_smooth(OF_SCALED),
        *(Row(name, name.replace("local", "pointwise")) for name in OF_SCALED if name.startswith("local")),
    ],
)

TRAINED = {"rotated": {"augment": "affine"}, "upright": {"augment": "zoom-shear"}}
SHAPE_KERNELS = {"local": {**SO3, "kernel": "local", "basis": 7}, "pointwise": SO3}
# On 24 rotations, smooth kernels start with coefficients of 0.006 to 0.03, no larger than a few steps of 5e-3.
SHAPE_STEPS: dict[str, Changes] = {"adamw": {}, "modes": MODES, "adamw-slow": {"lr": 1e-3}}
OF_SHAPES = starts(
    {f"{kernel}-{name}": {**how, **data} for name, data in TRAINED.items() for kernel, how in SHAPE_KERNELS.items()},
    SHAPE_STEPS,
)
LOCAL_SHAPES = [name for name in OF_SHAPES if name.startswith("local")]

# ModelNet10 in 30³ from smooth and from flat initial spectra: local beside pointwise kernels on 24 rotations.
SHAPES = Study(
    task="volumes",
    data="ModelNet10, voxels of 30³, without its test part (python -m studies.data.held_out): 2,486 shapes to train "
    "on, 414 to validate, 330 to test.",
    protocol="SO(3) with 24 rotations, 110,000 parameters, trained upright or on rotated shapes; scored upright and in "
    "random orientation.",
    recipe={**SHAPE_RECIPE, "epochs": 40, "widths": (12, 16, 48, 96), "parameters": 110_000},
    networks=OF_SHAPES,
    seeds=5,
    rows=[
        *flat_over_smooth(OF_SHAPES), *flat_over_smooth(OF_SHAPES, TESTED_ROTATED),
        *(Row(name, name.replace("local", "pointwise"), measure=TESTED_ROTATED) for name in LOCAL_SHAPES),
    ],
)  # fmt: skip

SMOOTH: dict[str, Changes] = {f"modes-{s}": {**MODES, "smoothness": s} for s in (0.25, 0.5)}
OF_TRANSFER = starts({"so2": {"elements": 8}}, {"adamw": {}, "modes": MODES, **SMOOTH})
ROTATED = "accuracy, transformed"

# Small networks on upright digits, tested rotated: which start and which steps keep what training never showed.
TRANSFER = Study(
    task="digits",
    data="1,797 digits that come with scikit-learn.",
    protocol="SO(2) with 8 orientations, as in the demonstration: trained upright, tested upright and rotated.",
    recipe={
        "widths": (4, 6, 12, 16),
        "epochs": 20,
        "dropout": 0.0,
        "schedule": "one-cycle",
    },
    networks=OF_TRANSFER,
    seeds=5,
    rows=[Row(name, "so2-smooth-adamw", measure=ROTATED) for name in OF_TRANSFER if name != "so2-smooth-adamw"],
)
