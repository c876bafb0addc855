"""One split of a data set as the training loop wants it: whole batches, raw bytes."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .files import DataError
from .rows import Array, Rows

SPLITS = ("train", "valid", "test")


class Split(Dataset[tuple[Tensor, Tensor]]):
    """Images and targets of one split, read a batch at a time.

    `images` are rows of a file or an array (N, *space), or (N, *space, C) when `channels_last`; batches
    come out as (B, C, *space) in the stored dtype: uint8 crosses to the device at a quarter of float's
    cost; `as_float` is for there. `rows` picks and orders the images used, one for each of `targets`.
    `notes` say what was left out.
    """

    def __init__(
        self,
        images: Rows | Array,
        targets: Array,
        classes: Sequence[str],
        *,
        rows: Array | None = None,
        channels_last: bool = False,
        window: tuple[slice, ...] = (),
        synthetic: bool = False,
        notes: Sequence[str] = (),
    ) -> None:
        self._images, self._channels_last, self._window = images, channels_last, window
        self._rows = np.arange(len(images)) if rows is None else rows
        self.targets = torch.from_numpy(np.ascontiguousarray(targets))
        if len(self.targets) != len(self._rows):
            raise DataError(f"{len(self._rows)} images but {len(self.targets)} targets; they must match one to one")
        self.classes, self.synthetic, self.notes = tuple(classes), synthetic, tuple(notes)
        shape = tuple(self._read([0]).shape[1:]) if len(self) else (1, *images.shape[-2:])
        self.in_channels, self.space = shape[0], shape[1:]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self._read([index])[0], self.targets[index]

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, Tensor]:
        """A batch: images (B, C, *space) and targets (B, …). Use with `collate_fn=batched`."""
        return self._read(indices), self.targets[torch.as_tensor(indices)]

    def _read(self, indices: Sequence[int]) -> Tensor:
        rows = self._rows[np.asarray(indices)]
        if isinstance(self._images, Rows):
            array = self._images.read(rows, self._window)
        else:
            array = self._images[rows][(slice(None), *self._window)]
        batch = torch.from_numpy(array)
        # A view, not a copy: the result is channels-last in memory, which convolutions like.
        return batch.movedim(-1, 1) if self._channels_last else batch.unsqueeze(1)


def batched(batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """The `collate_fn` for data sets that already answer with batches."""
    return batch


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
