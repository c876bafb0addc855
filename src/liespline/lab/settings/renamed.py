"""What settings, their values and tasks were called in earlier versions, and what they are called now."""

from typing import Any

SETTINGS = {
    "labels_are": "label_type", "window": "intensity_range", "about": "rotation_centre", "moved": "transformation",
    "n_h": "elements", "n_k": "basis", "within": "max_angle", "weights": "parameters", "disc": "circular_mask",
    "grids": "tta_grids", "batch": "batch_size", "decay": "weight_decay", "shift": "grid_jitter",
    "share": "train_fraction", "valid_too": "train_on_val", "start_from": "init_from",
}  # fmt: skip
VALUES: dict[str, dict[Any, Any]] = {
    "kernel": {"apart": "pointwise"},
    "optimiser": {"adamw-modes": "spectral-adamw"},
    "schedule": {"usual": "cosine"},
    "grid_jitter": {True: 1.0, False: 0.0},
    "augment": {
        "turns": "rotate", "flips": "flip", "flips-turns": "rotate+flip", "flip-rotate": "rotate+flip",
        "slant": "zoom-shear", "spin": "rotate-z+zoom-shear", "elastic-slant": "zoom-shear+elastic",
    },
}  # fmt: skip
"""Values of settings, by the settings' names of today."""
GONE = ("nan_guard",)
"""Settings of the training that only switched off what costs nothing now."""
TASKS = {
    "pcam": "studies.paper.pcam:PCAM",
    "celeba": "studies.paper.celeba:CELEBA",
    "rotmnist": "studies.digits:ROTMNIST",
    "mnist": "studies.digits:MNIST",
}
"""Tasks that moved out of the package."""
