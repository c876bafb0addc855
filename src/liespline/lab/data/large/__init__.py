"""Images too large for memory: read and written window by window."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..channels import MOST_PIXELS, SUFFIXES
from ..files import DataError, existing
from ..pictures import read_array, strict_pillow
from .slides import SLIDES, SlideWindows, open_slide
from .tiff import TiffWindows, open_tiff


class Held:
    """An image that is in memory already."""

    def __init__(self, values: Array, place: Mapping[int, tuple[Any, ...]]) -> None:
        self.values, self.place = values, place
        self.shape: tuple[int, int, int] = (values.shape[0], values.shape[1], values.shape[2])

    def read(self, top: int, left: int, bottom: int, right: int) -> Array:
        return self.values[:, top:bottom, left:right]


Windows = TiffWindows | SlideWindows | Held
"""An image (C, H, W) of which any window can be read without the rest.

`place` are TIFF tags that say where in the world it lies: code to (type, count, value).
"""


@contextmanager
def open_windows(path: Path, level: int = 0) -> Iterator[Windows]:
    """A TIFF or a slide, ready to be read window by window; `level` 0 is the finest of a pyramid.

    A TIFF of one page that fits into memory is read as training reads it: with its palette, transparency, orientation.
    """
    existing(path, "a TIFF file or a slide")
    if path.suffix.lower() in SUFFIXES:
        with open_tiff(path) as file:
            windows = TiffWindows(path, file, level)
            if level == 0 and len(file.pages) == 1 and math.prod(windows.shape[1:]) <= MOST_PIXELS:
                with strict_pillow():
                    pixels = read_array(path)
                yield Held(pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0), windows.place)
            else:
                windows.check_shown()
                yield windows
    elif path.suffix.lower() in SLIDES:
        with open_slide(path) as slide:
            yield SlideWindows(path, slide, level)
    else:
        raise DataError(f"{path}: is no large image; expected .tif, .tiff or a slide ({', '.join(SLIDES)})")


def read_window(source: Windows, top: int, left: int, bottom: int, right: int) -> Array:
    """A window that may reach beyond the image, which is continued by its edge there."""
    _, height, width = source.shape
    inside = (max(top, 0), max(left, 0), min(bottom, height), min(right, width))
    values = source.read(*inside)
    beyond = ((inside[0] - top, bottom - inside[2]), (inside[1] - left, right - inside[3]))
    return np.pad(values, ((0, 0), *beyond), mode="edge") if any(map(any, beyond)) else values
