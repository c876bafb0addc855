"""Volumes in MedMNIST's layout without their test part: validation volumes test, a seventh of the others validates.

For what settles a recipe, which test volumes must not: python -m studies.data.held_out modelnet10.npz OUT.npz
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from studies.command import Target, run


def main(file: Annotated[Path, typer.Argument(help="The official file.", show_default=False)], out: Target) -> None:
    """Write the file without its test part."""
    with np.load(file) as arrays:
        images, labels = arrays["train_images"], arrays["train_labels"]
        order = np.random.default_rng(0).permutation(len(labels))
        cut = len(order) // 7
        parts = {"val": order[:cut], "train": order[cut:]}
        dealt = {f"{name}_{kind}": whole[rows] for name, rows in parts.items() for kind, whole in
                 (("images", images), ("labels", labels))}  # fmt: skip
        np.savez_compressed(out, **dealt, test_images=arrays["val_images"], test_labels=arrays["val_labels"])


if __name__ == "__main__":
    run(main)
