"""What each task is, and its own defaults: light, so that `--help` can show them at once."""

from ..settings import Config

SIZED = (
    "max_angle", "separable", "kernel_size", "widths", "parameters", "tta_grids", "label_smoothing", "class_weights",
    "activation", "smooth", "breaking", "restrict", "norm",
)  # fmt: skip
"""Settings of the general classifiers and the U-Net."""
SORTED = (*SIZED, "project", "network", "circular_mask", "dropout", "train_fraction", "train_on_val")
"""Those of the general classifiers."""
GENERAL = (*SORTED, "stride")
_FOLDER = ("labels", "folds", "fold")
OPTIONS: dict[str, tuple[str, ...]] = {
    "digits": GENERAL,
    "images": (*GENERAL, *_FOLDER, "size", "label_type"),
    "volumes": (*GENERAL, *_FOLDER, "axis", "size", "label_type", "intensity_range", "spacing"),
    "segment": (*SIZED, *_FOLDER, "axis", "patch", "intensity_range", "spacing"),
    "landmarks": (*_FOLDER, "scale"),
}
"""The settings that each takes beyond those that all tasks take."""

DEFAULTS = {
    "digits": Config("digits").updated(elements=8, widths=(6, 8, 12, 16), epochs=12, batch_size=32),
    # Small batches: some hundred steps even for a folder of sixty images, and some steps for one of thirty scans.
    "images": Config("images").updated(
        elements=8, kernel="local", widths=(12, 16, 24, 32, 48), epochs=30, batch_size=8
    ),
    # Kernels that relate rotations to each other learn best from a flat start (studies/start.py:VOLUMES).
    "volumes": Config("volumes").updated(
        group="so3",
        elements=24,
        kernel="local",
        basis=7,
        stride=2,
        widths=(6, 8, 12),
        epochs=20,
        batch_size=8,
        bandwidth=0.5,
    ),
    "segment": Config("segment").updated(
        network="unet", elements=8, kernel="local", widths=(8, 12, 16, 24), epochs=30, batch_size=8, lr=0.004,
        augment="intensity",
    ),
    "landmarks": Config("landmarks").updated(
        network="celeba", group="scale", elements=3, basis=1, kernel="local", epochs=40, batch_size=8, lr=0.004
    ),
}  # fmt: skip


def takers(setting: str) -> list[str]:
    """The tasks that take a special setting."""
    return [task for task, options in OPTIONS.items() if setting in options]
