"""Volumes in NumPy's files: alone, or in MedMNIST's layout; and volumes of many sizes in the middle of one box."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from ..settings import one_of
from .arrays import MOST_CHANNELS, Array, channels_first, mapped_npy, opened_npz
from .files import DataError
from .split import SPLITS, Split
from .store import Item, Seen, Store, file_key, stored

ARRAYS = (".npz", ".npy")
_NAMES = {"train": "train", "valid": "val", "test": "test"}


def load(path: Path, split: str, size: int | tuple[int, ...] | None = None) -> Split:
    """A split: images (B, C, D, H, W) in the stored dtype, targets (B,), in the middle of a box of `size` if given.

    Images are (N, D, H, W), or (N, D, H, W, C) with at most 4 channels; labels (N,) or (N, 1).
    """
    path, name = Path(path), _NAMES[one_of("split", split, SPLITS)]
    with opened_npz(path) as arrays:
        if missing := [key for key in ("train_labels", f"{name}_labels", f"{name}_images") if key not in arrays]:
            raise DataError(f"{path}: has no array {missing[0]!r}; expected train_images, train_labels, val_…, test_…")
        labels, known = _labels(path, arrays, name), np.unique(_labels(path, arrays, "train"))
    if len(known) < 2:
        raise DataError(f"{path}: train_labels has one class only ({known.tolist()}); two or more are needed")
    if (bad := np.flatnonzero(~np.isin(labels, known))).size:
        raise DataError(f"{path}, {name}_labels row {bad[0]}: class {labels[bad[0]]} does not occur in train_labels")
    images = stored(
        path.with_name(f"{path.name}.{name}"), file_key(path), lambda whole: _items(path, f"{name}_images", len(labels))
    )
    volumes, notes = boxed(images, size)
    targets, classes = np.searchsorted(known, labels), [str(label) for label in known]
    return Split(volumes, targets, classes, channels_last=True, notes=notes)


def read_volumes(path: Path) -> Iterator[tuple[str, Array]]:
    """Every volume of a file by name, (C, D, H, W): a .npy of one or more, or each array of images in an .npz."""
    if path.suffix.lower() == ".npy":
        values = mapped_npy(path)
        one = values.ndim == 3 or (values.ndim == 4 and values.shape[-1] <= MOST_CHANNELS)
        yield from _rows(str(path), values[None] if one else values)
        return
    with opened_npz(path) as arrays:
        keys = [key for key in arrays if key.endswith("images")]
        if not keys:
            raise DataError(f"{path}: has no array of images in it; expected names that end with 'images'")
        for key in keys:
            yield from _rows(f"{path} {key}", arrays[key])


def _labels(path: Path, arrays: Mapping[str, Array], name: str) -> Array:
    """Class numbers (N,) of a split, one per image."""
    labels = arrays[f"{name}_labels"]
    if labels.dtype.kind not in "iu" or labels.shape not in ((labels.size,), (labels.size, 1)):
        raise DataError(f"{path}: {name}_labels is {labels.dtype} {labels.shape}; expected integers (N,) or (N, 1)")
    return labels.reshape(-1).astype(np.int64)


def _items(path: Path, key: str, count: int) -> Iterator[tuple[int, Item]]:
    with opened_npz(path) as arrays:
        images = arrays[key]
    if len(images) != count:
        raise DataError(f"{path}: {key} has {len(images)} volumes and {count} labels; expected one label per volume")
    for row, (_, volume) in enumerate(_rows(f"{path} {key}", images)):
        yield row, Item.of(volume)


def _rows(where: str, volumes: Array) -> Iterator[tuple[str, Array]]:
    """The volumes (C, D, H, W) of an array (N, D, H, W) or (N, D, H, W, C)."""
    if volumes.ndim not in (4, 5) or not len(volumes):
        raise DataError(f"{where}: has shape {volumes.shape}; expected one or more volumes (N, D, H, W[, channels])")
    if volumes.dtype not in (np.uint8, np.uint16, np.float32):
        raise DataError(f"{where}: has dtype {volumes.dtype}; expected uint8, uint16 or float32")
    for row, volume in enumerate(volumes):
        if not np.isfinite(volume).all():
            raise DataError(f"{where} row {row}: has values that are not finite; repair it")
        yield f"{where} row {row}", np.array(channels_first(where, volume))


def centred(values: Array, space: Sequence[int]) -> Array:
    """The middle of `values` (C, *own) in the middle of (C, *space): cut, or with each channel's lowest value around.

    Around, not zero: zero is air in one scan and tissue in another.
    """
    out = np.empty((len(values), *space), values.dtype)
    out[...] = values.min(tuple(range(1, values.ndim)), keepdims=True)
    inside, kept = [], []
    for own, wanted in zip(values.shape[1:], space, strict=True):
        count = min(own, wanted)
        inside.append(slice((wanted - count) // 2, (wanted - count) // 2 + count))
        kept.append(slice((own - count) // 2, (own - count) // 2 + count))
    out[(slice(None), *inside)] = values[(slice(None), *kept)]
    return out


class Centred:
    """Volumes of many sizes or of one in the middle of a box; read as an array (N, *space, C) is."""

    def __init__(self, volumes: Store, space: Sequence[int]) -> None:
        self.volumes, self.space = volumes, tuple(space)
        self.shape = (len(volumes), *self.space, volumes.shapes[0][0])

    def __len__(self) -> int:
        return len(self.volumes)

    @property
    def seen(self) -> Seen | None:
        """What was found when the volumes were decoded, if all of them are as large as the box."""
        return self.volumes.seen if {shape[1:] for shape in self.volumes.shapes} == {self.space} else None

    @property
    def spacings(self) -> list[tuple[float, ...]]:
        return self.volumes.spacings

    def read(self, rows: Sequence[int] | Array, window: Sequence[slice] = ()) -> Array:
        """These volumes, each cut to a window: (B, *space, C)."""
        read = [centred(self.volumes.array(int(row)), self.space)[(slice(None), *window)] for row in rows]
        return np.moveaxis(np.stack(read), 1, -1)


def boxed(volumes: Store, size: int | tuple[int, ...] | None) -> tuple[Centred, list[str]]:
    """Volumes in one box, of `size` (one number for a cube) or as large as the largest, and what that does to them."""
    sizes = [shape[1:] for shape in volumes.shapes]
    space = tuple(max(sides) for sides in zip(*sizes, strict=True))
    if size is not None:
        space = size if isinstance(size, tuple) else (size,) * 3
    notes, box = [], "×".join(map(str, space))
    if smaller := sum(any(own < wanted for own, wanted in zip(one, space, strict=True)) for one in sizes):
        notes.append(f"{smaller} of {len(sizes)} volumes are smaller than {box}: around them is their lowest value")
    if larger := sum(any(own > wanted for own, wanted in zip(one, space, strict=True)) for one in sizes):
        notes.append(f"{larger} of {len(sizes)} volumes are larger than {box}: only their middle is seen")
    return Centred(volumes, space), notes
