"""A large mask written band by band, so that a killed writer goes on where it was."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tifffile

from ..arrays import Array
from ..files import DataError, replaced
from ..store import digest

TILE = 256


class Bands:
    """Rows of a mask (H, W) of class numbers, appended in order to a file beside the result until all are there.

    `key` says what the mask depends on: rows that were made with another key are not taken up.
    """

    def __init__(self, out: Path, shape: tuple[int, int], key: str) -> None:
        self.out, self.shape = out, shape
        self.path = out.with_name(f".{out.name}.{digest(key)}.rows")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        size = self.path.stat().st_size if self.path.exists() else 0
        self.done = min(size // shape[1], shape[0])
        """Rows that are on disk."""

    def keep(self, rows: int) -> None:
        """Drop what is beyond `rows`: half a band, or half a row, that was being written."""
        with open(self.path, "ab") as stream:
            stream.truncate(rows * self.shape[1])
        self.done = rows

    def append(self, band: Array) -> None:
        """Add rows (h, W)."""
        try:
            with open(self.path, "ab") as stream:
                stream.write(np.ascontiguousarray(band, np.uint8).tobytes())
        except OSError as error:
            self.keep(self.done)
            raise DataError(f"{self.path}: cannot be written ({error.strerror}); make room, then run again") from error
        self.done += len(band)

    def finish(self, place: Mapping[int, tuple[Any, ...]], values: Array) -> None:
        """Write the tiled TIFF from the rows, whole or not at all, then drop the rows; `values` has one per class."""
        tags = [(code, kind, count, value, True) for code, (kind, count, value) in place.items()]
        with replaced(self.out) as part:
            tifffile.imwrite(
                part,
                (values[tile] for tile in self._tiles()),
                shape=self.shape,
                dtype=values.dtype,
                tile=(TILE, TILE),
                compression="zlib",
                photometric="minisblack",
                metadata=None,
                extratags=tags,
                maxworkers=1,
            )
        self.path.unlink()

    def _tiles(self) -> Iterator[Array]:
        height, width = self.shape
        with open(self.path, "rb") as stream:
            for top in range(0, height, TILE):
                rows = min(TILE, height - top)
                band = np.zeros((TILE, -(-width // TILE) * TILE), np.uint8)
                band[:rows, :width] = np.fromfile(stream, np.uint8, rows * width).reshape(rows, width)
                for left in range(0, width, TILE):
                    yield band[:, left : left + TILE]
