"""What several studies share: recipes, the plain network beside ours, and families of studies."""

from collections.abc import Mapping
from typing import Any

from liespline.lab.sweep.study import Row, Study

Changes = Mapping[str, Any]

FAST = {"precision": "bf16-mixed", "compile": True}
ADAMW = {"optimiser": "adamw", "smoothness": 0.0}
OLD = {"architecture": 1, "bandwidth": 0.0, **ADAMW}
"""The networks, start and steps of 0.2, which these results are of."""
RECIPE = {**OLD, "schedule": "one-cycle", "lr": 5e-3, "batch_size": 128, "label_smoothing": 0.1, "ema": 0.995, **FAST}
CHAIN = {"widths": (24, 32, 36, 36, 48, 64)}
PLAIN = {"group": "none", "elements": 1, "basis": 1, "kernel": "dense"}
LOCAL = {"kernel": "local"}
MODES = {"optimiser": "spectral-adamw", "smoothness": 0.0}
"""For rotated data."""
STARTS: dict[str, Changes] = {"smooth": {}, "flat": {"bandwidth": 0.5}}
# Coefficients of flat starts are 3 to 12 times as large, and norms leave only the ratio of a step to them: faster too.
FAST_STEPS = {"lr": 0.0125}
STEPS: dict[str, Changes] = {
    "adamw": {}, "modes": MODES, "adamw-fast": FAST_STEPS, "modes-fast": {**MODES, **FAST_STEPS},
}  # fmt: skip
VALID_AUC = "validation AUC, last 5 epochs"

# Separable layers have the fewest errors at equal parameters. No epoch is picked, so all 12,000 digits are trained on.
DIGITS = {**RECIPE, **CHAIN, "augment": "affine", "epochs": 56, "train_on_val": True, "parameters": 1_000_000}
FULL: dict[str, Changes] = {"so2-16": {"elements": 16, "separable": True}, "plain": PLAIN}
ROTATED = "MNIST's files: rotated digits are generated, 12,000 to train on, 50,000 to test."

TISSUE = {
    **RECIPE,
    **MODES,
    "weight_decay": 0.01,
    "batch_size": 64,
    "ema": 0.99,
    "network": "resnet",
    "augment": "rotate",
}
PCAM = {
    "o2-12": {"group": "o2", "elements": 24, "basis": 16, "kernel": "dense", "parameters": 110_000},
    "plain": {**PLAIN, "parameters": 117_000},
}
# The label of a patch depends on its middle.
IN_DISC = {name: {**how, "circular_mask": True} for name, how in PCAM.items()}
SEALED = (
    "A subset of PCam, recompressed as JPEG: 12,782 patches to train on, 6,389 other ones to score, and no test files."
)
SUBSET = "PCam's files; ours are a subset, recompressed: not comparable with the full set."

# Kernels that relate rotations of 90° to each other trained badly (modelnet10_local). Upright volumes are resampled
# too, by a shear: they would else be sharper than the rotated ones that are scored.
SHAPES = {**RECIPE, "batch_size": 32, "ema": 0.99, "widths": (12, 16, 24, 32), "kernel_size": 5, "stride": 2}
SO3 = {"group": "so3", "elements": 24, "basis": 1, "kernel": "pointwise"}
TESTED_ROTATED = "accuracy, transformed"
IN_BOX = {"widths": (12, 16, 48, 96), "size": 34}


def budgets(*parameters: int) -> dict[str, Changes]:
    """Separable local kernels on 16 orientations, and the plain network, of several sizes."""
    ours = {"elements": 16, "basis": 5, "separable": True, **LOCAL}
    pair = (("so2-16", ours), ("plain", PLAIN))
    return {f"{name}-{n // 1000}k": {**how, "parameters": n} for n in parameters for name, how in pair}


def starts(kernels: Mapping[str, Changes], steps: Mapping[str, Changes] = STEPS) -> dict[str, Changes]:
    """Every kernel from smooth and from flat starts, with every optimiser."""
    return {
        f"{name}-{start}-{taken}": {**how, **drawn, **stepped}
        for name, how in kernels.items()
        for taken, stepped in steps.items()
        for start, drawn in STARTS.items()
    }


def flat_over_smooth(networks: Mapping[str, Changes], measure: str = "accuracy") -> list[Row]:
    """Each flat start beside the smooth one of the same kernel and optimiser."""
    return [Row(name, name.replace("-flat-", "-smooth-"), measure=measure) for name in networks if "-flat-" in name]


def shares(networks: Mapping[str, Changes], shares: Mapping[float, tuple[int, int]]) -> dict[str, Changes]:
    """Ours and the plain network with shares of the labels, and the epochs of both: few images make short epochs."""
    return {
        f"{name}-{round(100 * share)}": {**how, "train_fraction": share, "epochs": epochs}
        for share, each in shares.items()
        for (name, how), epochs in zip(networks.items(), each, strict=True)
    }


def volumes(steps: Changes | None = None) -> dict[str, Changes]:
    """SO(3) and the plain network, trained on upright volumes and on rotated ones."""
    upright, rotated = {"augment": "zoom-shear"}, {**(steps or {}), "augment": "affine"}
    return {
        "so3-24": {**SO3, **upright, "grid_jitter": 1.0}, "plain": {**PLAIN, **upright},
        "so3-24-rotated": {**SO3, **rotated}, "plain-rotated": {**PLAIN, **rotated},
    }  # fmt: skip


def organs(name: str, side: int) -> Study:
    """A set of MedMNIST3D, upright, where rotations are left to the test."""
    return Study(
        task="volumes",
        data=f"{name}, {side}³, the official file.",
        protocol="Trained upright, or on rotated volumes; scored upright and in random orientation.",
        # Few volumes make short epochs: after 24, or 900 steps, the loss still fell (vessel_64_24_epochs). With every
        # second voxel of 64³, as of 28³, a run would take thirteen times as long.
        recipe={**SHAPES, "epochs": 72, "parameters": 28_000, "stride": 2 if side == 28 else 4},
        networks=volumes(),
        rows=[Row("so3-24", "plain"), Row("so3-24", "plain-rotated"), Row("so3-24-rotated", "plain-rotated")],
    )
