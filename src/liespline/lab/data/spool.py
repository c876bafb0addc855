"""Arrays put aside in a temporary file until all of a set have been read: what one becomes may depend on the others."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Self

import numpy as np

from .arrays import Array


class Spool:
    """A nameless file, which is gone when the block ends."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def put(self, array: Array) -> Callable[[], Array]:
        """Put an array aside; what comes back reads it again."""
        start, shape, kind = self._file.seek(0, os.SEEK_END), array.shape, array.dtype
        self._file.write(np.ascontiguousarray(array).tobytes())

        def again() -> Array:
            self._file.seek(start)
            return np.frombuffer(self._file.read(int(np.prod(shape)) * kind.itemsize), kind).reshape(shape)

        return again
