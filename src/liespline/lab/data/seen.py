"""What is known of the images of a split once they have been read."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .split import Split, as_float
from .value_range import STATISTICS, statistics

_BLOCK_VALUES = 1 << 24


@dataclass(frozen=True)
class Seen:
    """One entry per image: fingerprints of samples, and minimum, mean and maximum of each channel (N, 3, C)."""

    marks: list[str]
    statistics: Tensor
    dtype: str
    labels: list[str]


def seen(split: Split) -> Seen:
    """Read every image once."""
    if True:
        labels: list[str] = []
        marks: list[str] = []
        found = [torch.zeros(0, len(STATISTICS), split.in_channels)]
        dtype = ""
        step = max(1, _BLOCK_VALUES // (split.in_channels * math.prod(split.space)))
        for images, targets in split.blocks(step):
            found.append(statistics(as_float(images)))
            dtype = str(images.dtype).removeprefix("torch.")
            marks += [_mark(image) for image in images]
            labels += [split.classes[int(t)] if t.ndim == 0 else _mark(t) for t in targets]
        return Seen(marks, torch.cat(found), dtype, labels)


def _mark(values: Tensor) -> str:
    raw = values.contiguous().flatten().view(torch.uint8).numpy()
    return hashlib.blake2b(raw.data, digest_size=6).hexdigest()
