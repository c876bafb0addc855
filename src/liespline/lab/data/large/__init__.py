"""Images too large for memory: read and written window by window."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..files import DataError, existing
from .slides import SLIDES, SlideWindows, open_slide
from .tiff import TiffWindows, open_tiff
from .windows import Windows, read_window

__all__ = ["Windows", "open_windows", "read_window"]


@contextmanager
def open_windows(path: Path, level: int = 0) -> Iterator[Windows]:
    """A TIFF or a slide, ready to be read window by window; `level` 0 is the finest of a pyramid."""
    existing(path, "a TIFF file or a slide")
    if path.suffix.lower() in (".tif", ".tiff"):
        with open_tiff(path) as file:
            yield TiffWindows(path, file, level)
    elif path.suffix.lower() in SLIDES:
        with open_slide(path) as slide:
            yield SlideWindows(path, slide, level)
    else:
        raise DataError(f"{path}: is no large image; expected .tif, .tiff or a slide ({', '.join(SLIDES)})")
