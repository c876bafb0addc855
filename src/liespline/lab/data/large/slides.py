"""Windows of slides in the scanners' own formats, by OpenSlide where it is installed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array
from ..files import DataError, decoding

SLIDES = (".svs", ".ndpi", ".mrxs", ".scn", ".vms", ".vmu", ".bif", ".svslide")


def open_slide(path: Path) -> Any:
    """The slide, to be closed after use."""
    try:
        import openslide
    except ImportError as error:
        raise DataError(f"{path}: is a slide; to read it: pip install 'liespline[slides]'") from error
    with decoding(path, "cannot be read as a slide", "fetch it again"):
        return openslide.OpenSlide(path)


class SlideWindows:
    """One level of a slide as an RGB image (3, H, W)."""

    place: Mapping[int, tuple[Any, ...]] = {}

    def __init__(self, path: Path, slide: Any, level: int = 0) -> None:
        self._slide = slide
        if not 0 <= level < self._slide.level_count:
            raise DataError(f"{path}: has no level {level}; it has levels 0 to {self._slide.level_count - 1}")
        self.path, self._level = path, level
        width, height = self._slide.level_dimensions[level]
        self.shape = (3, height, width)

    def read(self, top: int, left: int, bottom: int, right: int) -> Array:
        """The samples (3, bottom − top, right − left), white where the scanner saw nothing."""
        factor = self._slide.level_downsamples[self._level]
        start, size = (round(left * factor), round(top * factor)), (right - left, bottom - top)
        with decoding(f"{self.path}, rows {top} to {bottom}", "cannot be read", "fetch it again"):
            region = self._slide.read_region(start, self._level, size)
        rgba = np.asarray(region).astype(np.uint16)
        colour, opaque = rgba[..., :3], rgba[..., 3:]
        over_white = (colour * opaque + 255 * (255 - opaque) + 127) // 255
        return np.moveaxis(over_white.astype(np.uint8), -1, 0)
