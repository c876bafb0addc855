"""A folder to segment: bright discs on noise, with their masks."""

from pathlib import Path

import numpy as np
from PIL import Image


def discs(root: Path, count: int = 14, side: int = 40, seed: int = 0) -> Path:
    draw = np.random.default_rng(seed)
    for part in ("images", "masks"):
        (root / part).mkdir(parents=True, exist_ok=True)
    for i in range(count):
        size = (side, side + 8 * (i % 2))
        y, x = np.mgrid[: size[0], : size[1]]
        mask = np.zeros(size, bool)
        for _ in range(3):
            cy, cx = draw.uniform(6, size[0] - 6), draw.uniform(6, size[1] - 6)
            mask |= (y - cy) ** 2 + (x - cx) ** 2 < draw.uniform(3, 7) ** 2
        image = 60 + 120 * mask + draw.normal(0, 15, size)
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(root / "images" / f"{i:02}.png")
        Image.fromarray(mask.astype(np.uint8)).save(root / "masks" / f"{i:02}.png")
    return root
