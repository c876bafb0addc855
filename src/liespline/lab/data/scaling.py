"""Images brought to another size and depth."""

from typing import Any

import numpy as np
import torch

from .rows import Array


def in_16_bits(array: Array) -> Array:
    """An image among those of 16 bits: of one with 8 bits, 255 becomes 65,535."""
    return array.astype(np.uint16) * 257 if array.dtype == np.uint8 else array


def scaling(size: int) -> dict[str, Any]:
    """What `scaled` does, for other programs: by the filter of Pillow's BICUBIC, in floats."""
    how = {
        "filter": "bicubic",
        "a": -0.5,
        "antialias": True,
        "rounded": "to whole numbers, half to even, and cut to 0 to largest",
    }
    sides = {"shorter_side": size, "longer_side": "round(own · shorter_side / shorter own)"}
    return {"resize": sides | how, "crop": "the middle, (own − shorter_side) // 2 pixels cut before"}


def scaled(array: Array, space: tuple[int, int]) -> Array:
    """Scaled until it just covers (height, width), smoothed where it shrinks, then the centre of that size cut out."""
    planes = torch.from_numpy(array.astype(np.float32).reshape(*array.shape[:2], -1)).permute(2, 0, 1)
    scale = max(wanted / own for wanted, own in zip(space, array.shape[:2], strict=True))
    target = [max(wanted, round(own * scale)) for wanted, own in zip(space, array.shape[:2], strict=True)]
    whole = torch.nn.functional.interpolate(planes.unsqueeze(0), target, mode="bicubic", antialias=True)[0]
    top, left = ((own - wanted) // 2 for own, wanted in zip(target, space, strict=True))
    cut: Array = whole[:, top : top + space[0], left : left + space[1]].permute(1, 2, 0).numpy()
    if array.dtype.kind != "f":
        cut = np.clip(np.rint(cut), 0, np.iinfo(array.dtype).max).astype(array.dtype)
    return cut.reshape(*space, *array.shape[2:])
