"""One split of a data set as the training loop wants it: whole batches, raw bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .centred import Centred
from .files import DataError
from .ragged import Ragged
from .rows import Array, Rows

SPLITS = ("train", "valid", "test")
GREY = (0.299, 0.587, 0.114)
"""How much red, green and blue count in grey."""
ALL = "all"
"""Every image of a set in one, whatever its split."""


class Split(Dataset[tuple[Tensor, Tensor]]):
    """Images and targets of one split, read a batch at a time.

    `images` are rows of a file or an array (N, *space), or (N, *space, C) when `channels_last`; batches
    come out as (B, C, *space) in the stored dtype: uint8 crosses to the device at a quarter of float's
    cost; `as_float` is for there. `rows` picks and orders the images used, one for each of `targets`.
    `names` are those of all `images`, where they have any; `dealt` says that no file says which split an image
    belongs to: we dealt them out. `kind` says what targets are: classes (B,), tags or numbers (B, names), or
    points (B, names, 2). `notes` say what was left out.
    """

    side: float | None = None
    """For volumes that state it: the side in millimetres that all voxels were brought to."""
    values: tuple[int, ...] = ()
    """For masks: what files hold for each class."""
    voxels: float | None = None
    """For volumes that state it: the side in millimetres of the usual voxel, before it was resampled."""
    whole: tuple[int, ...] = ()
    """Sides of the stored images, where a window in their middle is all that is read."""

    def __init__(
        self,
        images: Rows | Array | Centred,
        targets: Array,
        classes: Sequence[str],
        *,
        rows: Array | None = None,
        channels_last: bool = False,
        window: tuple[slice, ...] = (),
        synthetic: bool = False,
        notes: Sequence[str] = (),
        names: Sequence[str] | None = None,
        dealt: bool = False,
        kind: str = "classes",
    ) -> None:
        self._images, self._channels_last, self._window = images, channels_last, window
        self._rows = np.arange(len(images)) if rows is None else rows
        self.targets = torch.from_numpy(np.ascontiguousarray(targets))
        if len(self.targets) != len(self._rows):
            raise DataError(f"{len(self._rows)} images but {len(self.targets)} targets; they must match one to one")
        self.classes, self.synthetic, self.notes = tuple(classes), synthetic, tuple(notes)
        self._names, self.dealt, self.kind = names, dealt, kind
        shape = tuple(self._read([0]).shape[1:]) if len(self) else (1, *images.shape[-2:])
        self.in_channels, self.space = shape[0], shape[1:]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return in_colours(self._read([index]), self.in_channels)[0], self.targets[index]

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """A batch: images (B, C, *space) and targets (B, …). Use with `collate_fn=batched`."""
        return in_colours(self._read(indices), self.in_channels), self.targets[torch.as_tensor(indices)]

    def blocks(self, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All images with their targets, `rows` at a time."""
        for start in range(0, len(self), rows):
            yield self.__getitems__(range(start, min(start + rows, len(self))))

    def to_learn_from(self, seed: int) -> Dataset[tuple[Tensor, Tensor]]:
        """What training sees of it."""
        return self

    def to_pick_by(self) -> Dataset[Any]:
        """What the best epoch is picked by."""
        return self

    @property
    def names(self) -> list[str]:
        """What to call each image: its file, or its row."""
        return [self._names[int(row)] if self._names else f"row {row}" for row in self._rows]

    @property
    def has_names(self) -> bool:
        """Whether images are files, not rows of one."""
        return self._names is not None

    @property
    def spacings(self) -> list[tuple[float, ...]]:
        """The size of each volume's own voxels in millimetres, where files state it; else none."""
        items = self._images.items if isinstance(self._images, Centred) else None
        return [items.spacings[int(row)] for row in self._rows] if isinstance(items, Ragged) else []

    def named(self, names: Sequence[str]) -> Split:
        """The images of these names, in this order; all must be there."""
        at = {name: index for index, name in enumerate(self.names)}
        return self._part(np.array([at[name] for name in names], np.int64))

    def share(self, share: float) -> Split:
        """A share of the images, of each class alike, always the same ones; a smaller share is part of a larger one."""
        if share == 1:
            return self
        targets = self.targets.numpy() if self.kind == "classes" else np.zeros(len(self), np.int64)
        chosen = []
        for label in np.unique(targets):
            members = np.random.default_rng([2, int(label)]).permutation(np.flatnonzero(targets == label))
            chosen.append(members[: max(1, round(share * len(members)))])
        return self._part(np.sort(np.concatenate(chosen)))

    def _part(self, chosen: Array) -> Split:
        part = copy(self)
        part._rows, part.targets = self._rows[chosen], self.targets[torch.from_numpy(chosen)]
        return part

    def among(self, classes: Sequence[str], where: str) -> Split:
        """The same images with their classes numbered as in `classes`, of which there may be more than here."""
        if self.classes == tuple(classes):
            return self
        if self.kind != "classes":
            raise DataError(
                f"{where}: has {self.kind} {', '.join(self.classes)}; the network gives {', '.join(classes)}"
            )
        if unknown := [name for name in self.classes if name not in classes]:
            raise DataError(f"{where}: has classes {', '.join(unknown)}; the network knows {', '.join(classes)}")
        part = copy(self)
        part.targets = torch.tensor([classes.index(name) for name in self.classes])[self.targets]
        part.classes = tuple(classes)
        return part

    def in_colours(self, channels: int, where: str) -> Split:
        """The same images with so many channels: colours as grey, or grey three times."""
        check_channels(self.in_channels, channels, len(self.space), where)
        part = copy(self)
        part.in_channels = channels
        return part

    def _read(self, indices: Sequence[int]) -> Tensor:
        rows = self._rows[np.asarray(indices)]
        if isinstance(self._images, Rows):
            array = self._images.read(rows, self._window)
        else:
            array = self._images[rows][(slice(None), *self._window)]
        batch = torch.from_numpy(array)
        # A view, not a copy: the result is channels-last in memory, which convolutions like.
        return batch.movedim(-1, 1) if self._channels_last else batch.unsqueeze(1)


class Joined(Split):
    """Several splits of one set, one after the other; names say which split an image is of."""

    def __init__(self, parts: Mapping[str, Split]) -> None:
        self._parts = list(parts.values())
        first = self._parts[0]
        self._starts = np.cumsum([0, *(len(part) for part in self._parts)])
        self.targets = torch.cat([part.targets for part in self._parts])
        self._names = [f"{name}: {image}" for name, part in parts.items() for image in part.names]
        self.classes, self.synthetic, self.notes, self.dealt = first.classes, first.synthetic, first.notes, False
        self.kind, self.side = first.kind, first.side
        self.whole, self.voxels = first.whole, first.voxels
        self.in_channels, self.space = first.in_channels, first.space
        if {(part.classes, part.in_channels, part.space) for part in self._parts} != {
            (first.classes, first.in_channels, first.space)
        }:
            raise DataError(f"splits {', '.join(parts)} have other classes or sizes; they cannot be scored as one")

    @property
    def names(self) -> list[str]:
        """Split and name of each image."""
        return list(self._names or ())

    @property
    def spacings(self) -> list[tuple[float, ...]]:
        """Of all parts."""
        return [own for part in self._parts for own in part.spacings]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def _read(self, indices: Sequence[int]) -> Tensor:
        places = np.asarray(indices)
        owner = np.searchsorted(self._starts, places, side="right") - 1
        read: list[Tensor] = [torch.empty(0)] * len(places)
        for number in np.unique(owner):
            here = np.flatnonzero(owner == number)
            for place, image in zip(here, self._parts[number]._read(places[here] - self._starts[number]), strict=True):
                read[place] = image
        return torch.stack(read)


def batched(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The `collate_fn` for data sets that already answer with batches."""
    return batch


def check_channels(found: int, channels: int, space_dim: int, where: str) -> None:
    """Refuse images of other channels than the network's, but for pictures: these are grey or in colour as wanted.

    The three channels of a volume are no colours, and their weighted mean is nothing that the network has seen.
    """
    if found != channels and (space_dim != 2 or {found, channels} != {1, 3}):
        raise DataError(f"{where}: has {found} channels; the network was trained on {channels}")


def in_colours(images: Tensor, channels: int, where: str = "the images") -> Tensor:
    """Images (B, C, H, W) with 1 or 3 channels: red, green and blue count 0.299, 0.587 and 0.114 in grey.

    Others are refused, and so are volumes, unless they have so many channels: `where` names them.
    """
    if images.shape[1] == channels:
        return images
    check_channels(images.shape[1], channels, images.ndim - 2, where)
    if channels == 3:
        return images.expand(-1, 3, *images.shape[2:])
    weights = torch.tensor(GREY, dtype=torch.float64).view(3, *(1,) * (images.ndim - 2))
    grey = (images.double() * weights).sum(1, keepdim=True)
    return (grey if images.dtype.is_floating_point else grey.round()).to(images.dtype)


def as_float(images: Tensor) -> Tensor:
    """Stored images as float32: unsigned integers mapped to [0, 1], floats as they are."""
    if images.dtype.is_floating_point:
        return images.float()
    return images.float() / torch.iinfo(images.dtype).max


def check_split(split: str) -> str:
    """The split's own name, or what it could have been."""
    if split not in SPLITS:
        raise ValueError(f"split {split!r} is unknown; choose one of {', '.join(SPLITS)}")
    return split


def stratified(labels: Array, split: str, seed: int, shares: Sequence[float] = (0.7, 0.15, 0.15)) -> Array:
    """Row numbers of one split of data that come without: each class cut by `shares`, always the same way.

    Every class with at least three members is present in all three splits.
    """
    chosen = []
    for label in np.unique(labels):
        members = np.random.default_rng([seed, int(label)]).permutation(np.flatnonzero(labels == label))
        held_out = [max(1, round(share * len(members))) for share in shares[1:]]
        valid_from = len(members) - sum(held_out)
        cuts = {"train": (0, valid_from), "valid": (valid_from, valid_from + held_out[0])}
        start, stop = cuts.get(check_split(split), (valid_from + held_out[0], len(members)))
        chosen.append(members[max(start, 0) : max(stop, 0)])
    return np.sort(np.concatenate(chosen))
