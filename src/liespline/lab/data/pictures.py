"""Image files opened without trusting them: known formats only, bounded size, one kind of error."""

import io
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kornia_rs.io
import numpy as np
from PIL import Image

from . import channels
from .channels import MOST_PIXELS, ORIENTATION
from .files import DataError
from .rows import Array

# Each of these is decoded inside Pillow; others would start programs (EPS) or read further files.
FORMATS = ("PNG", "JPEG", "TIFF")
SUFFIXES = (".png", ".jpg", ".jpeg", *channels.SUFFIXES)
_BITS_PER_SAMPLE = 258  # a TIFF tag


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
        advice = "repair or remove it" if path.suffix.lower() in SUFFIXES else "expected PNG, JPEG or TIFF"
        raise DataError(f"{path}: cannot be read as an image ({error}); {advice}") from error


def read_rgb(path: Path) -> Image.Image:
    """The whole image as 8-bit RGB, in the orientation it is stored in."""
    with picture(path) as image:
        return image.convert("RGB")


def read_array(path: Path) -> Array:
    """The whole image, upright: (H, W) grey or (H, W, 3) RGB, uint8 or uint16 as stored.

    Transparent pixels are shown on white. A file of several pages or frames is refused: one of them is not the file.
    A TIFF may have any channels, (H, W, C), and may hold float32.
    """
    if path.suffix.lower() in channels.SUFFIXES and (values := channels.read_channels(path)) is not None:
        return values
    with picture(path) as image:
        if image.format in ("PNG", "TIFF") and (frames := getattr(image, "n_frames", 1)) > 1:
            raise DataError(f"{path}: holds {frames} pages or frames; save each as an image of its own")
        orientation = int(image.getexif().get(ORIENTATION, 1))
        if image.format == "TIFF" and orientation != 1:
            # Pillow turns TIFFs while it decodes them, and mixes up the rows of those that lie on their side.
            with Image.open(_as_stored(path), formats=("TIFF",)) as stored:
                return _upright(_pixels(path, stored), orientation)
        return _upright(_pixels(path, image), orientation)


def has_transparency(path: Path) -> bool:
    """Whether any pixel of the file is not opaque."""
    if path.suffix.lower() in channels.SUFFIXES and channels.read_channels(path) is not None:
        return False
    with picture(path) as image:
        return image.has_transparency_data and bool((np.asarray(image.convert("RGBA"))[..., 3] < 255).any())


def _pixels(path: Path, image: Image.Image) -> Array:
    """The samples as they are stored, transparency shown on white."""
    deep = _depth(path, image) == 16
    if image.has_transparency_data:
        if deep:
            raise DataError(f"{path}: has 16-bit colours with transparency; save it without transparency")
        return _on_white(image)
    if image.mode == "RGB" and deep:
        # Pillow would drop the low byte of each colour without a word.
        read = kornia_rs.io.read_image_png_u16 if image.format == "PNG" else kornia_rs.io.read_image_tiff_u16
        return np.asarray(read(str(path), "rgb"))
    if image.mode.startswith("I;16"):
        return np.asarray(image).astype(np.uint16)
    if image.mode in ("1", "L"):
        return np.asarray(image.convert("L"))
    if image.mode in ("RGB", "P", "CMYK", "YCbCr", "LAB"):
        return np.asarray(image.convert("RGB"))
    raise DataError(f"{path}: has pixels of kind {image.mode!r}; save it as 8- or 16-bit grey or RGB")


def _on_white(image: Image.Image) -> Array:
    """What an 8-bit image with transparency looks like on white paper; grey stays grey."""
    both = np.asarray(image.convert("RGBA")).astype(np.float64)
    alpha = both[..., 3:] / 255
    shown: Array = np.rint(alpha * both[..., :3] + (1 - alpha) * 255).astype(np.uint8)
    return shown[..., 0] if image.mode in ("1", "L", "LA") else shown


def _upright(pixels: Array, orientation: int) -> Array:
    """The pixels as the EXIF orientation wants them seen."""
    ways = {
        2: lambda a: a[:, ::-1], 3: lambda a: a[::-1, ::-1], 4: lambda a: a[::-1], 5: lambda a: a.swapaxes(0, 1),
        6: lambda a: np.rot90(a, -1), 7: lambda a: a[::-1, ::-1].swapaxes(0, 1), 8: lambda a: np.rot90(a),
    }  # fmt: skip
    turned: Array = ways[orientation](pixels) if orientation in ways else pixels
    return np.ascontiguousarray(turned)


def _as_stored(path: Path) -> io.BytesIO:
    """A TIFF file whose first page says that it is upright already."""
    if path.stat().st_size > 8 * MOST_PIXELS:
        raise DataError(f"{path}: has over {8 * MOST_PIXELS:,} bytes; save it in a smaller file")
    raw = bytearray(path.read_bytes())
    order = "<" if raw[:2] == b"II" else ">"
    big = struct.unpack_from(order + "H", raw, 2)[0] == 43
    start = struct.unpack_from(order + ("Q" if big else "I"), raw, 8 if big else 4)[0]
    count = struct.unpack_from(order + ("Q" if big else "H"), raw, start)[0]
    entry, value = (20, 12) if big else (12, 8)
    for place in range(start + (8 if big else 2), start + (8 if big else 2) + count * entry, entry):
        if struct.unpack_from(order + "H", raw, place)[0] == ORIENTATION:
            struct.pack_into(order + "H", raw, place + value, 1)
    return io.BytesIO(raw)


def _depth(path: Path, image: Image.Image) -> int:
    """Bits per sample of a file."""
    if image.format == "PNG":
        with open(path, "rb") as stream:
            return stream.read(25)[24]  # the byte after width and height in the header chunk
    if image.format == "TIFF":
        return int(image.tag_v2.get(_BITS_PER_SAMPLE, (8,))[0])  # type: ignore[attr-defined]
    return 8
