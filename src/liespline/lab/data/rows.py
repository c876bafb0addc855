"""Equal-sized records of a file, memory-mapped: what every fast reader here is made of."""

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .files import DataError, check_declared_size, check_free_space, lock, replacing, write_text

Array = NDArray[Any]


class Rows:
    """Row i of a file: the `shape`d array of `dtype` at byte `offsets[i]`.

    Nothing is read until rows are asked for. The mapping is opened on first use and never pickled, so that
    each loader process opens its own and the pages are shared.
    """

    def __init__(self, path: Path, offsets: NDArray[np.int64], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.path, self.offsets, self.shape, self.dtype = path, offsets, shape, dtype
        self._row_bytes = int(np.prod(shape)) * dtype.itemsize
        self._bytes: NDArray[np.uint8] | None = None
        size, end = path.stat().st_size, int(offsets.max(initial=0)) + self._row_bytes
        if len(offsets) and end > size:
            row = int(np.argmax(offsets + self._row_bytes > size))
            raise DataError(
                f"{path}, row {row}: ends at byte {end:,} of {size:,}; the file is truncated: fetch it again"
            )

    def __len__(self) -> int:
        return len(self.offsets)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bytes": None}

    def read(self, rows: Sequence[int], window: tuple[slice, ...] = ()) -> Array:
        """The rows in the order asked for, each cut to `window`, freshly allocated: (len(rows), *cut)."""
        if self._bytes is None:
            self._bytes = np.memmap(self.path, mode="r")
        cut = np.empty(self.shape, np.uint8)[window].shape if window else self.shape
        out = np.empty((len(rows), *cut), self.dtype)
        for target, row in zip(out, rows, strict=True):
            start = self.offsets[row]
            record = self._bytes[start : start + self._row_bytes].view(self.dtype).reshape(self.shape)
            target[...] = record[window]
        return out


def npy_header(path: Path, stream: IO[bytes], name: str = "") -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of a NumPy array in C order, from its first bytes; `name` is its name inside `path`."""
    what = f"{path}: {name or 'it'}"
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except Exception as error:  # NumPy parses the header as Python text, which fails in many ways
        raise DataError(f"{what} is no NumPy array ({error}); make or fetch it again") from error
    if dtype.hasobject:
        raise DataError(f"{what} holds pickled objects, which can run code; save it as plain numbers")
    if fortran and len(shape) > 1:
        raise DataError(f"{what} is in Fortran order; save it with numpy.ascontiguousarray")
    declared = int(np.prod([float(n) for n in shape])) * dtype.itemsize
    check_declared_size(path, declared, f"{name or 'an array'} of shape {shape}")
    return shape, dtype


def npy_rows(path: Path) -> Rows:
    """The first axis of a `.npy` file as rows."""
    with open(path, "rb") as stream:
        shape, dtype = npy_header(path, stream)
        start = stream.tell()
    if not shape:
        raise DataError(f"{path}: holds one number; expected rows along the first axis")
    row_bytes = int(np.prod(shape[1:])) * dtype.itemsize
    if start + shape[0] * row_bytes > path.stat().st_size:
        raise DataError(f"{path}: is shorter than its {shape[0]:,} rows; make or fetch it again")
    return Rows(path, start + row_bytes * np.arange(shape[0], dtype=np.int64), shape[1:], dtype)


def write_npy(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[Array]) -> None:
    """Write `blocks`, which together have `shape`, as one `.npy` file, whole or not at all."""
    check_free_space(path.parent, int(np.prod(shape)) * dtype.itemsize)
    with replacing(path) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(stream, header)
        written = 0
        for block in blocks:
            stream.write(np.ascontiguousarray(block, dtype).tobytes())
            written += len(block)
        if written != shape[0]:
            raise DataError(f"{path}: {written} of {shape[0]} rows were written; nothing was kept")


Decoded = tuple[tuple[int, ...], np.dtype[Any], Iterable[Array]]  # shape, dtype, blocks of rows


def cached_rows(source: Path, key: str, decode: Callable[[], Decoded]) -> Rows:
    """Rows of what `decode()` reads from `source`, decoded once and kept as a `.npy` file.

    The file's name holds a digest of `key` (whatever the content depends on), so that a changed source is
    decoded anew; its older files go. Beside it lie the fingerprints of its rows.
    """
    folder = cache_folder(source)
    family = f"{source.name}.{digest(str(source.absolute()))}"
    target = folder / f"{family}.{digest(key)}.npy"
    if not (target.exists() and _marks_file(target).exists()):
        with lock(folder / f"{family}.lock", wait=True):
            if not target.exists():
                write_npy(target, *decode())
            rows = npy_rows(target)
            write_text(_marks_file(target), "\n".join(fingerprint(rows.read([row])) for row in range(len(rows))))
            for other in folder.iterdir():
                if (
                    other.name.startswith(f"{family}.")
                    and other.suffix in (".npy", ".marks")
                    and other.stem != target.stem
                ):
                    other.unlink(missing_ok=True)
    return npy_rows(target)


def marks_of(rows: Rows) -> list[str]:
    """The fingerprints of rows that `cached_rows` gave, in their order: equal ones are exact copies."""
    return _marks_file(rows.path).read_text(encoding="utf-8").split("\n")


def _marks_file(path: Path) -> Path:
    return path.with_suffix(".marks")


def fingerprint(values: Array) -> str:
    """A short name for the pixels of an image."""
    shape = " ".join(map(str, values.shape)).encode()
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes() + shape, digest_size=8).hexdigest()


def cache_folder(source: Path) -> Path:
    """$LIESPLINE_CACHE; else `.liespline-cache` beside the source or, if read-only, the user's cache."""
    chosen = os.environ.get("LIESPLINE_CACHE")
    usual = [source.parent / ".liespline-cache", Path.home() / ".cache" / "liespline"]
    for folder in [Path(chosen)] if chosen else usual:
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise DataError(
        f"{chosen or usual[0]}: cannot be written, and a decoded copy of {source} is needed; "
        "set LIESPLINE_CACHE to a folder you can write to"
    )


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def file_key(path: Path) -> str:
    """What changes whenever the content of the file, or of a file in the folder, is replaced."""
    if path.is_dir():
        return " ".join(file_key(entry) for entry in sorted(path.iterdir()))
    status = path.stat()
    return f"{path.name} {status.st_size} {status.st_mtime_ns}"
