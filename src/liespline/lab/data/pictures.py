"""Image files opened without trusting them, known formats only, and brought to another size or depth."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps

from . import channels
from .arrays import Array
from .channels import MOST_PIXELS
from .files import DataError, decoding, existing

# Each of these is decoded inside Pillow; others would start programs (EPS) or read further files.
FORMATS = ("PNG", "JPEG", "TIFF")
SUFFIXES = (".png", ".jpg", ".jpeg", *channels.SUFFIXES)


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
    existing(path, "PNG, JPEG or TIFF")
    advice = "repair or remove it" if path.suffix.lower() in SUFFIXES else "expected PNG, JPEG or TIFF"
    with decoding(path, "cannot be read as an image", advice), Image.open(path, formats=FORMATS) as image:
        if image.width * image.height > MOST_PIXELS:
            raise DataError(f"{path}: has {image.width}×{image.height} pixels; at most {MOST_PIXELS:,} are read")
        yield image


def read_array(path: Path) -> Array:
    """The whole image, upright: (H, W) grey or (H, W, 3) RGB, uint8 or uint16 as stored.

    Transparent pixels are shown on white. A file of several pages or frames is refused: one of them is not the file.
    A TIFF may have any channels, (H, W, C), and may hold float32.
    """
    return read_picture(path)[0]


def read_picture(path: Path) -> tuple[Array, bool]:
    """The same, and whether any pixel of the file is not opaque."""
    if path.suffix.lower() in channels.SUFFIXES and (values := channels.read_channels(path)) is not None:
        return values, False
    with picture(path) as image:
        if image.format in ("PNG", "TIFF") and (frames := getattr(image, "n_frames", 1)) > 1:
            raise DataError(f"{path}: holds {frames} pages or frames; save each as an image of its own")
        deep = ";16" in _raw_mode(image)
        _turn_upright(image)
        if image.has_transparency_data:
            if deep:
                raise DataError(f"{path}: has 16-bit colours with transparency; save it without transparency")
            return _on_white(image)
        if image.mode == "RGB" and deep:
            return _deep_colours(path, image), False
        if image.mode.startswith("I;16"):
            return np.array(image, np.uint16), False
        if image.mode in ("1", "L"):
            return np.array(image.convert("L")), False
        if image.mode in ("RGB", "P", "CMYK", "YCbCr", "LAB"):
            return np.array(image.convert("RGB")), False
        raise DataError(f"{path}: has pixels of kind {image.mode!r}; save it as 8- or 16-bit grey or RGB")


def _turn_upright(image: Any) -> None:
    """Decode an image and bring it into the orientation in which EXIF wants it seen."""
    image.filename = ""  # else Pillow maps the file into memory and mixes up the rows of TIFFs that lie on their side
    ImageOps.exif_transpose(image, in_place=True)  # TIFFs are upright once they are decoded, and say so
    image.load()


def _deep_colours(path: Path, image: Image.Image) -> Array:
    """Colours of 16 bits: Pillow keeps their high bytes, and the low ones of a file whose bytes it takes as swapped."""
    swapped = {"RGB;16B": "RGB;16L", "RGB;16L": "RGB;16B"}
    swapped["RGB;16N"] = "RGB;16B" if sys.byteorder == "little" else "RGB;16L"
    again: Any
    with picture(path) as again:
        raw = swapped[_raw_mode(again)]
        for number, tile in enumerate(again.tile):
            again.tile[number] = tile._replace(args=raw if isinstance(tile.args, str) else (raw, *tile.args[1:]))
        _turn_upright(again)
        return np.array(image, np.uint16) * 256 + np.array(again, np.uint16)


def _raw_mode(image: Any) -> str:
    """How the samples of a file are packed, in Pillow's words."""
    args = image.tile[0].args
    return str(args if isinstance(args, str) else args[0])


def _on_white(image: Image.Image) -> tuple[Array, bool]:
    """What an 8-bit image with transparency looks like on white paper, and if any is; grey stays grey."""
    both = np.asarray(image.convert("RGBA")).astype(np.float64)
    alpha = both[..., 3:] / 255
    shown: Array = np.rint(alpha * both[..., :3] + (1 - alpha) * 255).astype(np.uint8)
    return shown[..., 0] if image.mode in ("1", "L", "LA") else shown, bool((alpha < 1).any())


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
