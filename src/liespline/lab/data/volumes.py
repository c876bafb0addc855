"""Volumes in MedMNIST's layout: one .npz with train_images, train_labels, val_…, test_…."""

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from .centred import Centred, box_notes, box_of
from .files import DataError, check_declared_size, existing
from .rows import Array, npy_header, npy_rows
from .split import SPLITS, Split, check_split
from .store import Item, file_key, stored

ARRAYS = (".npz", ".npy")
_NAMES = {"train": "train", "valid": "val", "test": "test"}
_BLOCK_BYTES = 1 << 24


def check(path: Path) -> list[str]:
    """Every problem that would stop training on the file."""
    problems = []
    for split in SPLITS:
        try:
            load(path, split)
        except DataError as error:
            problems += error.problems
    return list(dict.fromkeys(problems))


def load(path: Path, split: str, size: int | tuple[int, ...] | None = None) -> Split:
    """A split: images (B, C, D, H, W) in the stored dtype, targets (B,), in the middle of a box of `size` if given.

    Images are (N, D, H, W), or (N, D, H, W, C) with at most 4 channels; labels (N,) or (N, 1).
    """
    path, name = existing(Path(path), "a folder of scans or MedMNIST's .npz"), _NAMES[check_split(split)]
    shape, dtype = _image_header(path, f"{name}_images")
    labels = _labels(path, name, shape[0])
    known = np.unique(labels if split == "train" else _labels(path, "train", None))
    if len(known) < 2:
        raise DataError(f"{path}: train_labels has one class only ({known.tolist()}); two or more are needed")
    if (bad := np.flatnonzero(~np.isin(labels, known))).size:
        raise DataError(f"{path}, {name}_labels row {bad[0]}: class {labels[bad[0]]} does not occur in train_labels")
    source = path.with_name(f"{path.name}.{name}")
    images = stored(source, file_key(path), lambda whole: _items(path, f"{name}_images", shape, dtype))
    classes, targets = [str(label) for label in known], np.searchsorted(known, labels)
    if size is None:
        return Split(images, targets, classes, channels_last=True)
    space = box_of(size)
    notes = box_notes(space, [shape[1:4]] * shape[0])
    return Split(Centred(images, space, channels_last=True), targets, classes, channels_last=True, notes=notes)


def _items(path: Path, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[tuple[int, Item]]:
    """The volumes of an array, (D, H, W, C) each."""
    volumes = (volume for block in _stream(path, key, shape, dtype) for volume in block)
    for row, volume in enumerate(volumes):
        yield row, Item.of(volume if len(shape) == 5 else volume[..., None], channels_last=True)


def read_volumes(path: Path) -> Iterator[tuple[str, Tensor]]:
    """Every volume of a file by name, (C, D, H, W): a .npy of one or more, or each array of images in an .npz."""
    existing(path, "volumes in an .npy or .npz file")
    if path.suffix.lower() == ".npy":
        rows = npy_rows(path)
        if len(rows.shape) == 2 or (len(rows.shape) == 3 and rows.shape[-1] <= 4):  # one volume
            yield from _named(str(path), rows.read(range(len(rows)))[None], 0)
            return
        for start in range(len(rows)):
            yield from _named(str(path), rows.read([start]), start)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            keys = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith("images.npy")]
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{path}: is no readable .npz file ({error}); fetch it again") from error
    if not keys:
        raise DataError(f"{path}: has no array of images in it; expected names that end with 'images'")
    for key in keys:
        shape, dtype = _image_header(path, key)
        start = 0
        for values in _stream(path, key, shape, dtype):
            yield from _named(f"{path} {key}", values, start)
            start += len(values)


def _named(where: str, values: Array, start: int) -> Iterator[tuple[str, Tensor]]:
    if values.ndim not in (4, 5) or values.dtype not in (np.uint8, np.uint16, np.float32):
        raise DataError(f"{where}: has {values.dtype} {values.shape}; expected volumes of uint8, uint16 or float32")
    for row, volume in enumerate(values, start):
        image = torch.tensor(volume)
        yield f"{where} row {row}", image.unsqueeze(0) if image.ndim == 3 else image.movedim(-1, 0)


def _image_header(path: Path, key: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    with _member(path, key) as stream:
        shape, dtype = npy_header(path, stream, key)
    if len(shape) not in (4, 5) or (len(shape) == 4) == (shape[-1] <= 4):
        raise DataError(f"{path}: {key} has shape {shape}; expected volumes (N, D, H, W) or (N, D, H, W, channels ≤ 4)")
    if min(shape) < 1:
        raise DataError(f"{path}: {key} has shape {shape}, so no volumes at all")
    if dtype not in (np.uint8, np.uint16, np.float32):
        raise DataError(f"{path}: {key} has dtype {dtype}; expected uint8, uint16 or float32")
    return shape, dtype


def _labels(path: Path, name: str, count: int | None) -> Array:
    """Class numbers (N,) of a split; `count` is how many there must be (None: as many as images)."""
    key = f"{name}_labels"
    expected = _image_header(path, f"{name}_images")[0][0] if count is None else count
    with _member(path, key) as stream:
        shape, dtype = npy_header(path, stream, key)
        if shape not in ((expected,), (expected, 1)) or dtype.kind not in "iu":
            raise DataError(f"{path}: {key} is {dtype} {shape}; expected whole numbers ({expected}, 1), one per image")
        return np.frombuffer(_exactly(path, key, stream, expected * dtype.itemsize, 0), dtype).astype(np.int64)


def _stream(path: Path, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[Array]:
    """The rows of an array, a block at a time, so that memory does not depend on what the file declares."""
    row_bytes = int(np.prod(shape[1:])) * dtype.itemsize
    step = max(1, _BLOCK_BYTES // row_bytes)
    with _member(path, key) as stream:
        npy_header(path, stream, key)
        for start in range(0, shape[0], step):
            count = min(step, shape[0] - start)
            raw = _exactly(path, key, stream, count * row_bytes, start)
            block = np.frombuffer(raw, dtype).reshape(count, *shape[1:])
            if dtype.kind == "f" and (bad := np.flatnonzero(~np.isfinite(block.reshape(count, -1)).all(1))).size:
                raise DataError(f"{path}, {key} row {start + bad[0]}: has values that are not finite; repair it")
            yield block


def _exactly(path: Path, key: str, stream: IO[bytes], size: int, row: int) -> bytes:
    try:
        raw = stream.read(size)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise DataError(f"{path}, {key} from row {row}: cannot be unpacked ({error}); fetch it again") from error
    if len(raw) != size:
        raise DataError(f"{path}, {key} from row {row}: ends too early; fetch it again")
    return raw


def _member(path: Path, key: str) -> IO[bytes]:
    """One array of the archive, opened for reading; nothing is unpacked to disk or unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(f"{key}.npy")
            check_declared_size(path, info.file_size, f"{key} of {info.file_size:,} bytes")
            return archive.open(info)
    except KeyError as error:
        raise DataError(f"{path}: has no array {key!r}; expected train_images, train_labels, val_…, test_…") from error
    except (OSError, RuntimeError, NotImplementedError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: is no readable .npz file ({error}); fetch it again") from error
