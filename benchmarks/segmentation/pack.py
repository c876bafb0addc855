"""Nuclei and hippocampus volumes packed for a machine without them: `python pack.py DATA OUT`.

DATA holds the folders nuclei/fluo, nuclei/histo (train and valid, each with images and masks) and hippocampus (images
and labels), as `load_pairs` reads them. Each image and volume is normalised by itself and kept as one byte per sample:
steps of 1/32 of a standard deviation.
"""

import sys
from pathlib import Path

import numpy as np

from liespline.lab.data.mask_split import MaskSplit
from liespline.lab.data.scans import Reading
from liespline.lab.tasks.segment import load_pairs

STEPS = 32


def bytes_of(values: np.ndarray) -> np.ndarray:
    """Normalised samples as bytes; `study.py` takes (byte − 128) / STEPS."""
    return np.clip(np.rint(Reading().normalised(values) * STEPS + 128), 0, 255).astype(np.uint8)


def packed(pairs: MaskSplit) -> dict[str, np.ndarray]:
    """Images and masks one after the other, and their sizes."""
    rows = [int(row) for row in pairs._rows]
    return {
        "images": np.concatenate([bytes_of(pairs.items.image(row)).ravel() for row in rows]),
        "masks": np.concatenate([pairs.items.mask(row).ravel() for row in rows]),
        "shapes": np.array([pairs.items.shapes[row] for row in rows]),
        "held_out": np.array([name.startswith("valid/") for name in pairs.names]),
        "classes": np.array(pairs.classes),
    }


if __name__ == "__main__":
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    for name, folder in (("fluo", "nuclei/fluo"), ("histo", "nuclei/histo"), ("hippocampus", "hippocampus")):
        arrays = packed(load_pairs(source / folder))
        np.savez_compressed(target / f"{name}.npz", **arrays)
        print(name, len(arrays["shapes"]), "pairs", (target / f"{name}.npz").stat().st_size >> 10, "KiB")
