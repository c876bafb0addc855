"""Windows of tiled, striped and pyramidal TIFF files, by tifffile: only the tiles that a window meets are decoded."""

import math
from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from ..arrays import Array
from ..channels import ORIENTATION
from ..files import DataError, decoding

KEPT_BYTES = 1 << 26  # decoded tiles kept for the next window
MOST_SEGMENT = 1 << 28  # a file of larger pieces cannot be read in constant memory
# ModelPixelScale, ModelTiepoint, ModelTransformation, GeoKeyDirectory, GeoDoubleParams, GeoAsciiParams, nodata.
PLACE = (33550, 33922, 34264, 34735, 34736, 34737, 42113)


def open_tiff(path: Path) -> tifffile.TiffFile:
    """The file, of which only the headers have been read."""
    with decoding(path, "cannot be read as TIFF", "fetch it again"), ExitStack() as failed:
        file = failed.enter_context(tifffile.TiffFile(path))
        if not file.series:
            raise ValueError("there is no image in it")
        failed.pop_all()
        return file


class TiffWindows:
    """One level of a TIFF file as an image (C, H, W); whole before it is opened, or a DataError that names the tile."""

    def __init__(self, path: Path, file: tifffile.TiffFile, level: int = 0) -> None:
        self.path = path
        levels = file.series[0].levels
        if not 0 <= level < len(levels):
            raise DataError(f"{path}: has no level {level}; its pyramid has levels 0 to {len(levels) - 1}")
        axes = levels[level].axes.replace("S", "").replace("C", "")
        self._pages: list[Any] = [page.aspage() for page in levels[level].pages if page is not None]
        first = self._pages[0]
        if axes != "YX":
            raise DataError(f"{path}: has axes {levels[level].axes}; expected one image, grey or with channels")
        self._planes = [int(page.samplesperpixel) for page in self._pages]
        self.shape = (sum(self._planes), int(first.imagelength), int(first.imagewidth))
        self.dtype: np.dtype[Any] = np.dtype(first.dtype)
        self.place: Mapping[int, tuple[Any, ...]] = self._place(first, levels[0].pages[0])
        self._segment = lru_cache(KEPT_BYTES // self._check() or 1)(self._decode)

    def _place(self, page: Any, finest: Any) -> dict[int, tuple[Any, ...]]:
        tags = {code: finest.tags[code] for code in PLACE if code in finest.tags}
        place = {code: (int(tag.dtype), int(tag.count), tag.value) for code, tag in tags.items()}
        scale = finest.imagewidth / page.imagewidth
        if scale != 1 and 33550 in place:  # a coarser level has larger pixels
            kind, count, (x, y, *rest) = place[33550]
            place[33550] = (kind, count, (x * scale, y * scale, *rest))
        return place

    def _check(self) -> int:
        """The bytes of the largest tile; DataError if it cannot be held, or if tiles lie beyond the end of the file."""
        segment = max(math.prod(page.chunks) for page in self._pages) * self.dtype.itemsize
        if segment > MOST_SEGMENT:
            raise DataError(
                f"{self.path}: is stored in pieces of {segment >> 20:,} MiB; save it tiled, for instance with "
                "`vips tiffsave IN OUT --tile` or `gdal_translate -co TILED=YES IN OUT`"
            )
        size = self.path.stat().st_size
        beyond = [
            f"{self.path}, {self._name(page, index)}: lies beyond the end of the file"
            for page in self._pages
            for index, part in enumerate(zip(page.dataoffsets, page.databytecounts, strict=True))
            if sum(part) > size
        ]
        if beyond:
            raise DataError([*beyond, f"{self.path}: is truncated: fetch it again"])
        return segment

    def check_shown(self) -> None:
        """Refuse an image whose samples are not what is seen: training reads small ones with all that says how."""
        page = self._pages[0]
        how = getattr(page.photometric, "name", str(page.photometric))
        side = page.tags.valueof(ORIENTATION, 1)
        if how in ("PALETTE", "MINISWHITE") or side != 1 or self.dtype.name not in ("uint8", "uint16", "float32"):
            raise DataError(
                f"{self.path}: is stored as {how.lower()} of {self.dtype}, orientation {side}; an "
                "image this large is read window by window: save it upright, as grey or RGB of uint8, uint16 or float32"
            )

    def read(self, top: int, left: int, bottom: int, right: int) -> Array:
        """The samples (C, bottom − top, right − left) of a window inside the image."""
        out = np.zeros((self.shape[0], bottom - top, right - left), self.dtype)
        plane = 0
        for number, (page, planes) in enumerate(zip(self._pages, self._planes, strict=True)):
            for index in self._met(page, top, left, bottom, right):
                segment, (sample, y, x) = self._segment(number, index)
                inside = segment[max(top - y, 0) : bottom - y, max(left - x, 0) : right - x]
                high, wide, samples = inside.shape
                y, x, sample = max(y - top, 0), max(x - left, 0), plane + sample
                out[sample : sample + samples, y : y + high, x : x + wide] = np.moveaxis(inside, -1, 0)
            plane += planes
        return out

    def _met(self, page: Any, top: int, left: int, bottom: int, right: int) -> list[int]:
        """Numbers of the tiles or strips that a window meets, in each plane of a file with separate channels."""
        high, wide = self._sides(page)
        grid = np.arange(len(page.dataoffsets)).reshape(-1, -(-page.imagelength // high), -(-page.imagewidth // wide))
        return list(map(int, grid[:, top // high : -(-bottom // high), left // wide : -(-right // wide)].ravel()))

    @staticmethod
    def _sides(page: Any) -> tuple[int, int]:
        """Height and width of tiles or strips."""
        return (page.tilelength, page.tilewidth) if page.is_tiled else (page.rowsperstrip, page.imagewidth)

    def _name(self, page: Any, index: int) -> str:
        high, wide = self._sides(page)
        across = -(-page.imagewidth // wide)
        row, column = divmod(index % (-(-page.imagelength // high) * across), across)
        return f"tile in row {row}, column {column}" if page.is_tiled else f"strip {index}"

    def _decode(self, number: int, index: int) -> tuple[Array, tuple[int, int, int]]:
        """A tile (h, w, samples) of a page and where it begins: plane, row, column."""
        page = self._pages[number]
        offset, count = page.dataoffsets[index], page.databytecounts[index]
        with decoding(f"{self.path}, {self._name(page, index)}", "cannot be decoded", "fetch it again"):
            page.parent.filehandle.seek(offset)
            data = page.parent.filehandle.read(count) if count else None  # a tile left out by the writer holds nothing
            values, (sample, _, y, x, _), shape = page.decode(data, index, jpegtables=page.jpegtables)
        held = np.full(shape, page.nodata, self.dtype) if values is None else np.asarray(values).reshape(shape)
        return held[0], (sample, y, x)
