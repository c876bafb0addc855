"""ModelNet10 in 30³ from smooth and from flat initial spectra: local beside pointwise kernels on 24 rotations."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import MODES, SHAPES, SO3, TESTED_ROTATED, Changes, flat_over_smooth, starts

TRAINED = {"rotated": {"augment": "affine"}, "upright": {"augment": "zoom-shear"}}
KERNELS = {"local": {**SO3, "kernel": "local", "basis": 7}, "pointwise": SO3}
# On 24 rotations, smooth kernels start with coefficients of 0.006 to 0.03, no larger than a few steps of 5e-3.
STEPS: dict[str, Changes] = {"adamw": {}, "modes": MODES, "adamw-slow": {"lr": 1e-3}}
NETWORKS = starts(
    {f"{kernel}-{name}": {**how, **data} for name, data in TRAINED.items() for kernel, how in KERNELS.items()}, STEPS
)
LOCAL = [name for name in NETWORKS if name.startswith("local")]

STUDY = Study(
    task="volumes",
    data="ModelNet10, voxels of 30³, without its test part (python -m studies.data.held_out): 2,486 shapes to train "
    "on, 414 to validate, 330 to test.",
    protocol="SO(3) with 24 rotations, 110,000 parameters, trained upright or on rotated shapes; scored upright and in "
    "random orientation.",
    recipe={**SHAPES, "epochs": 40, "widths": (12, 16, 48, 96), "parameters": 110_000},
    networks=NETWORKS,
    seeds=5,
    rows=[
        *flat_over_smooth(NETWORKS), *flat_over_smooth(NETWORKS, TESTED_ROTATED),
        *(Row(name, name.replace("local", "pointwise"), measure=TESTED_ROTATED) for name in LOCAL),
    ],
)  # fmt: skip
