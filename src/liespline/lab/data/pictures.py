"""Image files opened without trusting them: known formats only, bounded size, one kind of error."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kornia_rs.io
import numpy as np
from PIL import Image, ImageOps

from .files import DataError
from .rows import Array

# Each of these is decoded inside Pillow; others would start programs (EPS) or read further files.
FORMATS = ("PNG", "JPEG", "TIFF")
SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
MOST_PIXELS = 64_000_000
_BITS_PER_SAMPLE = 258  # TIFF tag


@contextmanager
def strict_pillow() -> Iterator[None]:
    """Pillow's remarks on odd metadata ignored, its alarm at huge images an error. Not inside threads."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


@contextmanager
def picture(path: Path) -> Iterator[Image.Image]:
    """An opened image of which only the header has been read; anything wrong with it is a DataError."""
    if path.exists() and not path.is_file():  # a pipe would keep us waiting
        raise DataError(f"{path}: is not a plain file; repair or remove it")
    try:
        with Image.open(path, formats=FORMATS) as image:
            if image.width * image.height > MOST_PIXELS:
                raise DataError(f"{path}: has {image.width}×{image.height} pixels; at most {MOST_PIXELS:,} are read")
            yield image
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path}: does not exist") from error
    except Exception as error:  # Pillow's decoders raise almost anything on damaged files
        raise DataError(f"{path}: cannot be read as an image ({error}); repair or remove it") from error


def read_rgb(path: Path) -> Image.Image:
    """The whole image as 8-bit RGB, in the orientation it is stored in."""
    with picture(path) as image:
        return image.convert("RGB")


def read_array(path: Path) -> Array:
    """The whole image, upright: (H, W) grey or (H, W, 3) RGB, uint8 or uint16 as stored."""
    with picture(path) as image:
        if image.mode == "RGB" and _depth(path, image) == 16:
            # Pillow would drop the low byte of each colour without a word.
            read = kornia_rs.io.read_image_png_u16 if image.format == "PNG" else kornia_rs.io.read_image_tiff_u16
            return np.asarray(read(str(path), "rgb"))
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I;16"):
            return np.asarray(upright).astype(np.uint16)
        if upright.mode in ("1", "L", "LA"):
            return np.asarray(upright.convert("L"))
        if upright.mode in ("RGB", "RGBA", "P", "PA", "CMYK", "YCbCr", "LAB"):
            return np.asarray(upright.convert("RGB"))
        raise DataError(f"{path}: has pixels of kind {upright.mode!r}; save it as 8- or 16-bit grey or RGB")


def _depth(path: Path, image: Image.Image) -> int:
    """Bits per sample of an RGB file."""
    if image.format == "PNG":
        with open(path, "rb") as stream:
            return stream.read(25)[24]  # the byte after width and height in the header chunk
    if image.format == "TIFF":
        return int(image.tag_v2.get(_BITS_PER_SAMPLE, (8,))[0])  # type: ignore[attr-defined]
    return 8
