"""Smooth and flat initial spectra of kernels, with torch's AdamW and with steps in modes."""

from collections.abc import Mapping

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


def _beside_adamw(networks: Mapping[str, Changes], measure: str = "accuracy") -> list[Row]:
    """Each network beside the same one with torch's AdamW."""
    named = ((name, f"{name.split('-')[0]}-adamw") for name in networks if not name.endswith("adamw"))
    return [Row(name, other, measure=measure) for name, other in named]


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

SOFT: Changes = {**MODES, "smoothness": 0.25}
STEPPED: dict[str, Changes] = {"adamw": {}, "smooth-modes": SOFT}
OF_KERNELS = {f"{name}-{steps}": {**how, **taken} for name, how in KERNELS.items() for steps, taken in STEPPED.items()}

# Rotated digits with torch's AdamW and with smooth steps in modes: every kernel on the group.
DIGIT_STEPS = Study(
    task=DIGITS.task,
    data=DIGITS.data,
    protocol="SO(2) with 16 orientations, 200,000 parameters: which steps for which kernel?",
    recipe=DIGITS.recipe,
    networks=OF_KERNELS,
    seeds=5,
    rows=_beside_adamw(OF_KERNELS),
)

OF_TISSUE: dict[str, Changes] = {
    "smooth-modes": SOFT,
    "adamw": {},
    "modes": MODES,
    "adamw-slow": {"lr": 1.5e-3},
    "conv": {"group": "none", "elements": 1, "basis": 1, "network": "studies.rivals:conv_resnet"},
    "conv-slow": {"group": "none", "elements": 1, "basis": 1, "network": "studies.rivals:conv_resnet", "lr": 1.5e-3},
}

# PCam patches with torch's AdamW at two rates and with steps in modes; ordinary convolutions at the same two rates.
TISSUE_STEPS = Study(
    task="studies.paper.pcam:PCAM",
    data=PCAM.data,
    protocol="O(2) with 24 elements, 110,000 parameters, and an ordinary residual network; the AUC of the last five "
    "epochs.",
    recipe={**PCAM.recipe, **TISSUE_NETWORKS["o2-12"], "circular_mask": True},
    networks=OF_TISSUE,
    seeds=3,
    rows=[
        *(Row(name, "adamw", measure=VALID_AUC) for name in ("smooth-modes", "modes", "adamw-slow")),
        Row("smooth-modes", "modes", measure=VALID_AUC), Row("conv", "conv-slow", measure=VALID_AUC),
    ],
)  # fmt: skip

SCALES: dict[str, Changes] = {
    "local": {"group": "scale", "elements": 4, "basis": 3, **LOCAL}, "pointwise": POINTWISE_SCALES,
}  # fmt: skip
OF_SCALED = {f"{name}-{steps}": {**how, **taken} for name, how in SCALES.items() for steps, taken in STEPPED.items()}

# Scaled digits with torch's AdamW and with smooth steps in modes: local beside pointwise kernels on four scales.
SCALED_STEPS = Study(
    task="studies.digits:SPARE",
    data="MNIST's files: digits scaled to 0.3 to 1 are generated, 10,000 to train on, and 8,000 spare ones to test on.",
    protocol="Four scales, local and pointwise kernels.",
    recipe={**SCALED_DIGITS, **SLANTED},
    networks=OF_SCALED,
    seeds=5,
    rows=[*_beside_adamw(OF_SCALED), *(Row(f"local-{steps}", f"pointwise-{steps}") for steps in STEPPED)],
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

OF_VOLUMES: dict[str, Changes] = {}
for _kernel, _how in SHAPE_KERNELS.items():
    _rotated, _upright = ({**_how, **TRAINED[name]} for name in ("rotated", "upright"))
    OF_VOLUMES |= {f"{_kernel}-rotated-{steps}": {**_rotated, **taken} for steps, taken in STEPPED.items()}
    OF_VOLUMES |= {f"{_kernel}-upright-{steps}": {**_upright, **taken} for steps, taken in STEPPED.items()}
    OF_VOLUMES |= {f"{_kernel}-rotated-modes": {**_rotated, **MODES}}
    OF_VOLUMES |= {f"{_kernel}-rotated-flat": {**_rotated, **SOFT, "bandwidth": 0.5}}

# ModelNet10 in 30³ with torch's AdamW and with steps in modes: local beside pointwise kernels on 24 rotations.
VOLUMES = Study(
    task=SHAPES.task,
    data=SHAPES.data,
    protocol="As start_shapes, in 16 epochs; `flat` is a flat start with smooth steps in modes.",
    recipe={**SHAPES.recipe, "epochs": 16, "compile": False},
    networks=OF_VOLUMES,
    seeds=3,
    rows=[
        Row(f"{kernel}-{first}", f"{kernel}-{second}", measure=measure)
        for measure in ("accuracy", TESTED_ROTATED) for kernel in SHAPE_KERNELS
        for first, second in (
            ("rotated-smooth-modes", "rotated-adamw"), ("upright-smooth-modes", "upright-adamw"),
            ("rotated-smooth-modes", "rotated-modes"), ("rotated-flat", "rotated-smooth-modes"),
        )
    ] + [Row(f"local-rotated-{steps}", f"pointwise-rotated-{steps}", measure=TESTED_ROTATED) for steps in STEPPED],
)  # fmt: skip

SMOOTH: dict[str, Changes] = {f"modes-{s}": {**MODES, "smoothness": s} for s in (0.25, 0.5)}
OF_TRANSFER: dict[str, Changes] = {"adamw": {}, "modes": MODES, **SMOOTH, "flat-adamw": {"bandwidth": 0.5}}
ROTATED = "accuracy, transformed"

# Small networks on upright digits, tested rotated: which start and which steps keep what training never showed.
TRANSFER = Study(
    task="digits",
    data="1,797 digits that come with scikit-learn.",
    protocol="SO(2) with 8 orientations, as in the demonstration: trained upright, tested upright and rotated.",
    recipe={
        "elements": 8,
        "widths": (4, 6, 12, 16),
        "epochs": 20,
        "dropout": 0.0,
        "schedule": "one-cycle",
    },
    networks=OF_TRANSFER,
    seeds=5,
    rows=[
        Row(name, "adamw", measure=measure)
        for measure in (ROTATED, "accuracy")
        for name in OF_TRANSFER
        if name != "adamw"
    ],
)
