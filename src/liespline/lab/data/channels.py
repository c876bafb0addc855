"""TIFF files with any channels, as microscopes and satellites write them."""

from pathlib import Path

import numpy as np
import tifffile

from .arrays import Array
from .files import DataError, check_declared_size, decoding, existing

ORIENTATION = 274  # tag of TIFF and EXIF
SUFFIXES = (".tif", ".tiff")
MOST_PIXELS = 64_000_000
_ALPHA = (1, 2)  # kinds of extra samples that are transparency
_PICTURES = ("RGB", "PALETTE", "SEPARATED", "YCBCR", "CIELAB")  # what Pillow shows in colour


def read_channels(path: Path) -> Array | None:
    """Channels (H, W, C), or (H, W) of one, of a TIFF that is no grey or coloured picture of 8 or 16 bits.

    None for those: they have palettes, transparency and orientations, which Pillow knows.
    """
    existing(path, "a TIFF file")
    with decoding(path, "cannot be read as TIFF", "repair or remove it"), tifffile.TiffFile(path) as file:
        series, page = file.series[0], file.pages[0].aspage()
        axes, shape, dtype = series.axes.replace("S", "C"), series.shape, series.dtype
        integers, coloured = dtype in (np.uint8, np.uint16), getattr(page.photometric, "name", "") in _PICTURES
        planes = dtype == np.uint16 and page.planarconfig == 2  # which Pillow does not take apart
        picture = coloured and len(file.pages) == 1 and shape[axes.find("C")] in (3, 4) and not planes
        picture |= shape[axes.find("C")] == 2 and any(int(kind) in _ALPHA for kind in page.extrasamples)
        if dtype == np.bool_ or (integers and (picture or len(shape) == 2)):
            return None
        if sorted(axes) not in (["X", "Y"], ["C", "X", "Y"]):
            pages = len(file.pages)
            what = f"holds {pages} pages or frames" if pages > 1 else f"has axes {series.axes} of {shape}"
            raise DataError(
                f"{path}: {what}; expected one image with channels. A stack of slices is a volume: save it as "
                "NIfTI with the size of its voxels"
            )
        if not (integers or dtype == np.float32):
            raise DataError(f"{path}: has pixels of {dtype}; save them as uint8, uint16 or float32")
        if page.tags.valueof(ORIENTATION, 1) != 1:
            raise DataError(f"{path}: is stored on its side (orientation tag); save it upright")
        height, width = (shape[axes.index(axis)] for axis in "YX")
        if height * width > MOST_PIXELS:
            raise DataError(f"{path}: has {width}×{height} pixels; at most {MOST_PIXELS:,} are read")
        check_declared_size(path, series.nbytes, f"an image of {shape}")
        values = np.asarray(series.asarray())
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(f"{path}: {int((~np.isfinite(values)).sum()):,} pixels are NaN or infinite; replace them")
    values = np.moveaxis(values, axes.index("C"), -1) if "C" in axes else values
    return values[..., 0] if values.shape[2:] == (1,) else values
