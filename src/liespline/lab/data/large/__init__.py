"""Images too large for memory: read and written window by window."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..channels import MOST_PIXELS, SUFFIXES
from ..files import DataError, existing
from ..pictures import read_array, strict_pillow
from .slides import SLIDES, SlideWindows, open_slide
from .tiff import TiffWindows, open_tiff
from .windows import Held, Windows, read_window

__all__ = ["Windows", "open_windows", "read_window"]


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
