"""Volumes in MedMNIST's layout: one .npz with train_images, train_labels, val_…, test_…."""

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from .arrays import Array, npy_header
from .centred import Centred, box_notes, box_of
from .files import DataError, check_declared_size, existing
from .scans.arrays import read_npy
from .split import Split, check_split
from .store import Item, file_key, stored

ARRAYS = (".npz", ".npy")
_NAMES = {"train": "train", "valid": "val", "test": "test"}
_DAMAGED = (OSError, EOFError, RuntimeError, NotImplementedError, ValueError, zlib.error, zipfile.BadZipFile)


def load(path: Path, split: str, size: int | tuple[int, ...] | None = None) -> Split:
    """A split: images (B, C, D, H, W) in the stored dtype, targets (B,), in the middle of a box of `size` if given.

    Images are (N, D, H, W), or (N, D, H, W, C) with at most 4 channels; labels (N,) or (N, 1).
    """
    path, name = existing(Path(path), "a folder of scans or MedMNIST's .npz"), _NAMES[check_split(split)]
    labels = _labels(path, name)
    known = np.unique(labels if split == "train" else _labels(path, "train"))
    if len(known) < 2:
        raise DataError(f"{path}: train_labels has one class only ({known.tolist()}); two or more are needed")
    if (bad := np.flatnonzero(~np.isin(labels, known))).size:
        raise DataError(f"{path}, {name}_labels row {bad[0]}: class {labels[bad[0]]} does not occur in train_labels")
    source = path.with_name(f"{path.name}.{name}")
    images = stored(source, file_key(path), lambda whole: _items(path, f"{name}_images"))
    classes, targets = [str(label) for label in known], np.searchsorted(known, labels)
    if size is None:
        return Split(images, targets, classes, channels_last=True)
    space = box_of(size)
    notes = box_notes(space, [shape[:3] for shape in images.shapes])
    return Split(Centred(images, space, channels_last=True), targets, classes, channels_last=True, notes=notes)


def _items(path: Path, key: str) -> Iterator[tuple[int, Item]]:
    """The volumes of an array, (D, H, W, C) each."""
    for row, volume in enumerate(_volumes(path, key)):
        yield row, Item.of(volume if volume.ndim == 4 else volume[..., None], channels_last=True)


def read_volumes(path: Path) -> Iterator[tuple[str, Tensor]]:
    """Every volume of a file by name, (C, D, H, W): a .npy of one or more, or each array of images in an .npz."""
    existing(path, "volumes in an .npy or .npz file")
    if path.suffix.lower() == ".npy":
        values = read_npy(path, mapped=True)
        one = values.ndim == 3 or (values.ndim == 4 and values.shape[-1] <= 4)
        yield from _named(str(path), values[None] if one else values)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            keys = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith("images.npy")]
    except _DAMAGED as error:
        raise DataError(f"{path}: is no readable .npz file ({error}); fetch it again") from error
    if not keys:
        raise DataError(f"{path}: has no array of images in it; expected names that end with 'images'")
    for key in keys:
        yield from _named(f"{path} {key}", _volumes(path, key))


def _named(where: str, volumes: Iterable[Array]) -> Iterator[tuple[str, Tensor]]:
    for row, volume in enumerate(volumes):
        if volume.ndim not in (3, 4) or volume.dtype not in (np.uint8, np.uint16, np.float32):
            what = f"has {volume.dtype} {volume.shape}"
            raise DataError(f"{where}: {what}; expected volumes (D, H, W) or (D, H, W, C) of uint8, uint16 or float32")
        image = torch.tensor(volume)
        yield f"{where} row {row}", image.unsqueeze(0) if image.ndim == 3 else image.movedim(-1, 0)


def _labels(path: Path, name: str) -> Array:
    """Class numbers (N,) of a split, one per image."""
    key, images = f"{name}_labels", f"{name}_images"
    with _member(path, images) as (_, shape, dtype):
        _check(path, images, shape, dtype)
        expected = shape[0]
    with _member(path, key) as (stream, shape, dtype):
        if shape not in ((expected,), (expected, 1)) or dtype.kind not in "iu":
            raise DataError(f"{path}: {key} is {dtype} {shape}; expected whole numbers ({expected}, 1), one per image")
        return _exactly(path, key, stream, (expected,), dtype, 0).astype(np.int64)


def _volumes(path: Path, key: str) -> Iterator[Array]:
    """The rows of an array one by one, so that memory does not depend on what the file declares."""
    with _member(path, key) as (stream, shape, dtype):
        _check(path, key, shape, dtype)
        for row in range(shape[0]):
            volume = _exactly(path, key, stream, shape[1:], dtype, row)
            if dtype.kind == "f" and not np.isfinite(volume).all():
                raise DataError(f"{path}, {key} row {row}: has values that are not finite; repair it")
            yield volume


def _check(path: Path, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if len(shape) not in (4, 5) or (len(shape) == 4) == (shape[-1] <= 4):
        expected = "volumes (N, D, H, W) or (N, D, H, W, channels ≤ 4)"
        raise DataError(f"{path}: {key} has shape {shape}; expected {expected}")
    if min(shape) < 1:
        raise DataError(f"{path}: {key} has shape {shape}, so no volumes at all")
    if dtype not in (np.uint8, np.uint16, np.float32):
        raise DataError(f"{path}: {key} has dtype {dtype}; expected uint8, uint16 or float32")


def _exactly(path: Path, key: str, stream: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any], row: int) -> Array:
    size = int(np.prod(shape)) * dtype.itemsize
    try:
        raw = stream.read(size)
    except _DAMAGED as error:
        raise DataError(f"{path}, {key} from row {row}: cannot be unpacked ({error}); fetch it again") from error
    if len(raw) != size:
        raise DataError(f"{path}, {key} from row {row}: ends too early; fetch it again")
    return np.frombuffer(raw, dtype).reshape(shape)


@contextmanager
def _member(path: Path, key: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype[Any]]]:
    """One array of the archive, opened behind its header; nothing is unpacked to disk or unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(f"{key}.npy")
            check_declared_size(path, info.file_size, f"{key} of {info.file_size:,} bytes")
            stream = archive.open(info)
    except KeyError as error:
        raise DataError(f"{path}: has no array {key!r}; expected train_images, train_labels, val_…, test_…") from error
    except DataError:
        raise
    except _DAMAGED as error:
        raise DataError(f"{path}: is no readable .npz file ({error}); fetch it again") from error
    with stream:
        yield (stream, *npy_header(path, stream, key))
