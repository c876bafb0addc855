"""What stored samples mean: shares of the largest integer, colours of a picture; and which range training saw."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor

from .files import DataError

GREY = (0.299, 0.587, 0.114)
"""How much red, green and blue count in grey."""
IGNORE = 255
"""The class number of pixels and voxels of a mask that are neither trained on nor scored."""
STATISTICS = ("minimum", "mean", "maximum")
TAILS = (0.005, 0.995)  # quantiles over the training images: a few odd ones do not widen the range
SPREAD, OF_ALL = 0.1, 0.05  # the margin: shares of a statistic's own spread, and of all values in training
UNSEEN = 3.0  # few training images show too narrow a spread: the margin grows by this number over theirs
SHARE = 4  # more than one image in so many is outside before anything is said
ADVICE = "Inverted, or of another range of values, such as 12 bits in 16? Interpret the results cautiously"


def as_float(images: Tensor) -> Tensor:
    """Stored images as float32: unsigned integers mapped to [0, 1], floats as they are."""
    if images.dtype.is_floating_point:
        return images.float()
    return images.float() / torch.iinfo(images.dtype).max


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
    shares = torch.tensor(GREY, dtype=torch.float64).view(3, *(1,) * (images.ndim - 2))
    grey = (images.double() * shares).sum(1, keepdim=True)
    return (grey if images.dtype.is_floating_point else grey.round()).to(images.dtype)


def statistics(images: Tensor) -> Tensor:
    """Minimum, mean and maximum of each channel of images (B, C, *space), as a network sees them: (B, 3, C)."""
    flat = images.flatten(2)
    return torch.stack([flat.amin(2), flat.mean(2), flat.amax(2)], 1).double()


@dataclass(frozen=True)
class ValueRange:
    """Between which values the statistics of 99 % of the training images lie: `low` and `high`, each (3, C)."""

    low: tuple[tuple[float, ...], ...]
    high: tuple[tuple[float, ...], ...]
    images: int
    dtype: str
    """Of the stored images; integers come to the network as shares of their largest."""

    @classmethod
    def of(cls, found: Tensor, dtype: str) -> Self:
        """The range of training images with these statistics (N, 3, C)."""
        low, high = (tuple(map(tuple, part.tolist())) for part in np.quantile(found.numpy(), TAILS, 0))
        return cls(low, high, len(found), dtype)

    def is_of(self, channels: int) -> bool:
        """Whether it is one of images of so many channels."""
        table = np.array([self.low, self.high])
        return table.shape == (2, len(STATISTICS), channels) and bool(np.isfinite(table).all()) and self.images > 0

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:
        """The range and its margin, (3, C) each: beyond it an image is unlike those of training."""
        low, high = torch.tensor(self.low).double(), torch.tensor(self.high).double()
        margin = (SPREAD + UNSEEN / self.images) * (high - low) + OF_ALL * (high[2].max() - low[0].min())
        return low - margin, high + margin


@dataclass
class Comparison:
    """How many of the images that were added lie outside the range of training; without one, none does."""

    known: ValueRange | None
    total: int = 0
    outside: int = 0
    counts: Tensor = field(default_factory=lambda: torch.zeros(()))  # (2, 3, C): below and above, by statistic
    sums: Tensor = field(default_factory=lambda: torch.zeros(()))  # of the values that were counted

    def add(self, found: Tensor) -> None:
        """Count images by their statistics (B, 3, C)."""
        if self.known is None:
            return
        found = found.cpu()
        low, high = self.known.bounds
        sides = torch.stack([found < low, found > high], 1)  # (B, 2, 3, C)
        self.total += len(found)
        self.outside += int(sides.flatten(1).any(1).sum())
        self.counts = self.counts + sides.sum(0)
        self.sums = self.sums + (sides * found.unsqueeze(1)).sum(0)

    @property
    def remark(self) -> str | None:
        """One sentence with counts and numbers, if more than a quarter of the images lie outside."""
        if self.known is None or SHARE * self.outside <= self.total:
            return None
        counts = self.counts.clone()
        counts[:, 1] += 0.5  # of equal counts, the mean says most
        side, which, channel = (int(i) for i in np.unravel_index(int(counts.argmax()), counts.shape))
        count = int(self.counts[side, which, channel])
        value = float(self.sums[side, which, channel]) / count
        low, high = self.known.low[which][channel], self.known.high[which][channel]
        name = STATISTICS[which] + (f" of channel {channel + 1}" if counts.shape[2] > 1 else "")
        be = "is" if self.outside == 1 else "are"
        return (
            f"{self.outside:,} of {self.total:,} images {be} unlike the training images, {count:,} by their {name}: "
            f"{value:.3g}, in training {low:.3g} to {high:.3g}. {ADVICE}"
        )
