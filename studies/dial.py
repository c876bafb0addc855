"""The dial: how much of a symmetry serves shapes that stand upright, that lie alike, or that lie anyhow."""

from liespline.lab.sweep.study import Row, Study
from studies.front import Front
from studies.recipes import MODES, PLAIN, SHAPES, SO3, TESTED_ROTATED, Changes

UPRIGHT, ABOUT_Z, ROTATED = ({"augment": words} for words in ("zoom-shear", "rotate-z+zoom-shear", "affine"))
OF_MODELNET: dict[str, Changes] = {
    "breaking": {**SO3, **UPRIGHT, "breaking": True},
    "plain": {**PLAIN, **UPRIGHT},
    "jitter-0": {**SO3, **UPRIGHT},
    "jitter-1": {**SO3, **UPRIGHT, "grid_jitter": 1.0},
    "plain-rotated": {**PLAIN, **ROTATED},
    "jitter-z": {**SO3, **UPRIGHT, "grid_jitter": (0.0, 0.0, 1.0)},
    "plain-z": {**PLAIN, **ABOUT_Z},
}
BESIDE = {"breaking": "plain", "jitter-0": "plain", "jitter-z": "plain-z", "jitter-1": "plain-rotated"}

# ModelNet10 in 30³: grid jitter none to all, a frame bias, and plain networks over the same angles.
MODELNET10 = Study(
    task="volumes",
    data="ModelNet10, voxels of 30³, without its test part (python -m studies.data.held_out): 2,486 shapes to train "
    "on, 414 to validate, 330 to test.",
    protocol="SO(3) with 24 rotations, pointwise on the group, 110,000 parameters. Grid jitter of the whole cell is "
    "augmentation by any rotation, about the last axis alone by rotations about the vertical one; the plain network "
    "beside it is augmented by the same. Scored as they stand and in random orientation.",
    recipe={**SHAPES, "epochs": 16, "widths": (12, 16, 48, 96), "parameters": 110_000},
    networks=OF_MODELNET,
    rows=[Row(ours, other, measure=measure) for measure in ("accuracy", TESTED_ROTATED) for ours, other in
          BESIDE.items()],
)  # fmt: skip

STEPS = {**MODES, "smoothness": 0.25, "compile": False}
"""What suits every kernel of start_volumes."""
OF_SHAPES: dict[str, Changes] = {
    **{name: OF_MODELNET[name] for name in ("breaking", "plain", "jitter-0")},
    "jitter-half": {**SO3, **UPRIGHT, "grid_jitter": 0.5},
    **{name: OF_MODELNET[name] for name in ("jitter-1", "plain-rotated")},
    "plain-adamw": {**PLAIN, **UPRIGHT, "optimiser": "adamw"},
}

# ModelNet10 again, with smooth steps in modes.
SHAPE_DIAL = Study(
    task=MODELNET10.task,
    data=MODELNET10.data,
    protocol="As dial_modelnet10, with smooth steps in modes.",
    recipe={**MODELNET10.recipe, **STEPS},
    networks=OF_SHAPES,
    rows=[
        Front("jitter-1", "plain-rotated", TESTED_ROTATED, "ModelNet10, validation shapes, trained and tested rotated"),
        Front("breaking", "plain", "accuracy", "the same, trained and tested upright, with a frame bias"),
        *(Row(ours, other, measure=measure) for measure in ("accuracy", TESTED_ROTATED) for ours, other in
          {"jitter-0": "plain", "jitter-half": "plain", "plain": "plain-adamw"}.items()),
        Row("jitter-1", "plain-rotated"), Row("breaking", "plain", TESTED_ROTATED),
    ],
)  # fmt: skip

OF_HIPPOCAMPUS: dict[str, Changes] = {
    "breaking": {**SO3, "breaking": True},
    "plain": PLAIN,
    "axial": {"group": "axial", "elements": 8, "kernel": "local", "basis": 3},
    "plain-rotated": {**PLAIN, "augment": "rotate+intensity"},
    "so3": SO3,
    "restricted": {**SO3, "restrict": "3=axial"},
}
OURS = [name for name in OF_HIPPOCAMPUS if not name.startswith("plain")]

# Hippocampi, which all lie alike: SO(3), with a frame bias, restricted, about one axis, and none.
HIPPOCAMPUS = Study(
    task="studies.folds:SEGMENT",
    data="Medical Decathlon, task 4, its training part: 200 volumes in folders images and masks, five folds.",
    protocol="U-Nets of 60,000 parameters, 2,000 steps; SO(3) has 24 rotations and is pointwise on the group. Dice of "
    "whole volumes on their own grid, as they are stored and rotated.",
    recipe={"epochs": 57, "parameters": 60_000, "precision": "bf16-mixed", **MODES, "smoothness": 0.25},
    networks=OF_HIPPOCAMPUS,
    seeds=5,
    rows=[
        *(Row(ours, "plain", measure="Dice per image") for ours in OURS),
        *(Row(ours, "plain-rotated", measure="Dice, rotated") for ours in OURS),
    ],
)


def medical(name: str) -> Study:
    """A set of MedMNIST3D in 28³, five folds of its training and validation volumes."""
    ours = ("breaking", "so3", "so3-jitter")
    return Study(
        task="studies.folds:VOLUMES",
        data=f"{name}, 28³, the official file's training and validation volumes, five folds.",
        protocol="28,000 parameters, trained upright or on rotated volumes; scored upright and in random orientation.",
        recipe={**SHAPES, "epochs": 36, "parameters": 28_000, **STEPS},
        networks={
            "breaking": {**SO3, **UPRIGHT, "breaking": True}, "plain": {**PLAIN, **UPRIGHT},
            "so3": {**SO3, **UPRIGHT}, "so3-jitter": {**SO3, **UPRIGHT, "grid_jitter": 1.0},
            "plain-rotated": {**PLAIN, **ROTATED},
        },
        seeds=5,
        rows=[
            *(Row(network, "plain", measure="AUC") for network in ours),
            *(Row(network, "plain-rotated", measure="AUC, transformed") for network in ours),
        ],
    )  # fmt: skip


ADRENAL = medical("AdrenalMNIST3D")
VESSEL = medical("VesselMNIST3D")
