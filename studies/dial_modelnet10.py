"""The dial on ModelNet10 in 30³: grid jitter none to all, a frame bias, and plain networks over the same angles."""

from liespline.lab.sweep.study import Row, Study
from studies.recipes import PLAIN, SHAPES, SO3, TESTED_ROTATED, Changes

UPRIGHT, ABOUT_Z, ROTATED = ({"augment": words} for words in ("zoom-shear", "rotate-z+zoom-shear", "affine"))
NETWORKS: dict[str, Changes] = {
    "breaking": {**SO3, **UPRIGHT, "breaking": True},
    "plain": {**PLAIN, **UPRIGHT},
    "jitter-0": {**SO3, **UPRIGHT},
    "jitter-1": {**SO3, **UPRIGHT, "grid_jitter": 1.0},
    "plain-rotated": {**PLAIN, **ROTATED},
    "jitter-z": {**SO3, **UPRIGHT, "grid_jitter": (0.0, 0.0, 1.0)},
    "plain-z": {**PLAIN, **ABOUT_Z},
}
BESIDE = {"breaking": "plain", "jitter-0": "plain", "jitter-z": "plain-z", "jitter-1": "plain-rotated"}

STUDY = Study(
    task="volumes",
    data="ModelNet10, voxels of 30³, without its test part (python -m studies.data.held_out): 2,486 shapes to train "
    "on, 414 to validate, 330 to test.",
    protocol="SO(3) with 24 rotations, pointwise on the group, 110,000 parameters. Grid jitter of the whole cell is "
    "augmentation by any rotation, about the last axis alone by rotations about the vertical one; the plain network "
    "beside it is augmented by the same. Scored as they stand and in random orientation.",
    recipe={**SHAPES, "epochs": 16, "widths": (12, 16, 48, 96), "parameters": 110_000},
    networks=NETWORKS,
    rows=[Row(ours, other, measure=measure) for measure in ("accuracy", TESTED_ROTATED) for ours, other in
          BESIDE.items()],
)  # fmt: skip
