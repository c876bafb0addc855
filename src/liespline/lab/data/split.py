"""One split of a data set as the training loop wants it: whole batches, raw bytes."""

import math
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Protocol, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset

from .arrays import Array
from .files import DataError
from .samples import check_channels, in_colours
from .store import Seen, fingerprint

SPLITS = ("train", "valid", "test")
ALL = "all"
"""Every image of a set in one, whatever its split."""
_BLOCK_VALUES = 1 << 24


class Source(Protocol):
    """Images that are read when they are asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Those of an image, after how many there are for some."""

    def __len__(self) -> int: ...

    def read(self, rows: Sequence[int] | Array, window: Sequence[slice] = ()) -> Array:
        """These rows, each cut to a window: (B, *space), or (B, *space, C)."""


class Split(Dataset[tuple[Tensor, Tensor]]):
    """Images and targets of one split, read a batch at a time.

    `images` are an array or what reads like one, (N, *space), or (N, *space, C) when `channels_last`; batches
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
    _found: Seen | None = None

    def __init__(
        self,
        images: Source | Array,
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
        self._stored_channels = self.in_channels

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return in_colours(self._read([index]), self.in_channels)[0], self.targets[index]

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """A batch: images (B, C, *space) and targets (B, …). Use with `collate_fn=batched`."""
        return in_colours(self._read(indices), self.in_channels), self.targets[torch.as_tensor(indices)]

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
        known: list[tuple[float, ...]] = getattr(self._images, "spacings", [])
        return [known[int(row)] for row in self._rows] if known else []

    @property
    def labels(self) -> list[str]:
        """The class of each image; for other targets a fingerprint of them."""
        if self.kind == "classes":
            return [self.classes[int(target)] for target in self.targets]
        return [fingerprint(target.numpy()) for target in self.targets]

    @property
    def seen(self) -> Seen:
        """Fingerprints and ranges of values: from the time when images were decoded, else all are read, once."""
        kept: Seen | None = getattr(self._images, "seen", None)
        if kept is not None and not self._window and self.in_channels == self._stored_channels:
            return kept[self._rows]
        if self._found is None:
            step = max(1, _BLOCK_VALUES // (self.in_channels * math.prod(self.space)))
            blocks = (range(start, min(start + step, len(self))) for start in range(0, len(self), step))
            self._found = Seen.joined([Seen.of(self.__getitems__(rows)[0]) for rows in blocks], self.in_channels)
        return self._found

    @property
    def samples(self) -> int:
        """The samples of all images."""
        return len(self) * math.prod(self.space)

    @property
    def samples_drawn(self) -> int:
        """Those that an epoch of training sees."""
        return self.samples

    def named(self, names: Sequence[str]) -> Self:
        """The images of these names, in this order; all must be there."""
        at = {name: index for index, name in enumerate(self.names)}
        return self._part(np.array([at[name] for name in names], np.int64))

    def share(self, share: float) -> Self:
        """A share of the images, of each class alike, always the same ones; a smaller share is part of a larger one."""
        if share == 1:
            return self
        targets = self.targets.numpy() if self.kind == "classes" else np.zeros(len(self), np.int64)
        chosen = []
        for label in np.unique(targets):
            members = np.random.default_rng([2, int(label)]).permutation(np.flatnonzero(targets == label))
            chosen.append(members[: max(1, round(share * len(members)))])
        return self._part(np.sort(np.concatenate(chosen)))

    def _part(self, chosen: Array) -> Self:
        part = copy(self)
        part._rows, part.targets, part._found = self._rows[chosen], self.targets[torch.from_numpy(chosen)], None
        return part

    def among(self, classes: Sequence[str], where: str) -> Self:
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

    def in_colours(self, channels: int, where: str) -> Self:
        """The same images with so many channels: colours as grey, or grey three times."""
        check_channels(self.in_channels, channels, len(self.space), where)
        part = copy(self)
        part.in_channels, part._found = channels, None
        return part

    def _read(self, indices: Sequence[int] | Array) -> Tensor:
        rows = self._rows[np.asarray(indices)]
        if isinstance(self._images, np.ndarray):
            batch = torch.from_numpy(self._images[rows][(slice(None), *self._window)])
        else:
            batch = torch.from_numpy(self._images.read(rows, self._window))
        # A view, not a copy: the result is channels-last in memory, which convolutions like.
        return batch.movedim(-1, 1) if self._channels_last else batch.unsqueeze(1)


class Joined(Split):
    """Several splits of one set, one after the other; names say which split an image is of."""

    def __init__(self, parts: Mapping[str, Split]) -> None:
        first = next(iter(parts.values()))
        if len({(part.classes, part.in_channels, part.space) for part in parts.values()}) > 1:
            raise DataError(f"splits {', '.join(parts)} have other classes or sizes; they cannot be scored as one")
        super().__init__(
            _Chain(list(parts.values())), torch.cat([part.targets for part in parts.values()]).numpy(), first.classes,
            channels_last=True, synthetic=first.synthetic, notes=first.notes, kind=first.kind,
            names=[f"{name}: {image}" for name, part in parts.items() for image in part.names],
        )  # fmt: skip
        self.side, self.voxels, self.whole = first.side, first.voxels, first.whole


class _Chain:
    """The images of several splits, one after the other."""

    def __init__(self, parts: Sequence[Split]) -> None:
        self.parts = parts
        self._images: ConcatDataset[tuple[Tensor, Tensor]] = ConcatDataset(parts)
        self.shape = (len(self._images), *parts[0].space, parts[0].in_channels)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def seen(self) -> Seen:
        return Seen.joined([part.seen for part in self.parts], self.shape[-1])

    @property
    def spacings(self) -> list[tuple[float, ...]]:
        return [own for part in self.parts for own in part.spacings]

    def read(self, rows: Sequence[int] | Array, window: Sequence[slice] = ()) -> Array:
        """These images, (B, *space, C)."""
        images = torch.stack([self._images[int(row)][0] for row in rows])
        return images.movedim(1, -1).numpy()[(slice(None), *window)]


def batched(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The `collate_fn` for data sets that give whole batches."""
    return batch
