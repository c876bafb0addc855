"""Long work kept record by record, so that a killed run goes on where it was."""

import os
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from liespline.lab.data.arrays import Array
from liespline.lab.data.files import DataError

Progress = Callable[[str, int, int], None]
_BLOCK = 256


def journal(
    path: Path,
    record: np.dtype[Any],
    total: int,
    make: Callable[[int], Array],
    progress: Progress,
) -> Array:
    """Records 0 … total − 1, made in order by `make` on several threads and appended to `path`: (total,).

    What is there already is kept, up to the first record that is cut off or whose field `checksum` is not the
    CRC-32 of its field `image`. `progress(name, done, total)` is called between blocks.
    """
    try:
        with open(path, "ab") as stream, ThreadPoolExecutor(os.cpu_count()) as pool:
            done = _whole(path, record, total)
            stream.truncate(done * record.itemsize)
            while done < total:
                progress(path.name, done, total)
                block = range(done, min(done + _BLOCK, total))
                stream.write(b"".join(entry.tobytes() for entry in pool.map(make, block)))
                stream.flush()
                done = block.stop
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror}); make room, then run again to go on") from error
    progress(path.name, total, total)
    return np.memmap(path, record, mode="r", shape=(total,)) if total else np.empty(0, record)


def _whole(path: Path, record: np.dtype[Any], total: int) -> int:
    count = min(path.stat().st_size // record.itemsize, total)
    if not count or "checksum" not in (record.names or ()):
        return count
    for row, entry in enumerate(np.memmap(path, record, mode="r", shape=(count,))):
        if zlib.crc32(entry["image"].tobytes()) != entry["checksum"]:
            return row
    return count
