"""What every reader of large images gives."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..rows import Array


class Windows(Protocol):
    """An image (C, H, W) of which any window can be read without the rest."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """What the samples are."""

    @property
    def place(self) -> Mapping[int, tuple[Any, ...]]:
        """TIFF tags that say where in the world the image lies: code to (type, count, value)."""

    def read(self, top: int, left: int, bottom: int, right: int) -> Array:
        """The samples (C, bottom − top, right − left) of a window inside the image."""


class Held:
    """An image that is in memory already."""

    def __init__(self, values: Array, place: Mapping[int, tuple[Any, ...]]) -> None:
        self.values, self.place = values, place
        self.shape: tuple[int, int, int] = (values.shape[0], values.shape[1], values.shape[2])
        self.dtype: np.dtype[Any] = values.dtype

    def read(self, top: int, left: int, bottom: int, right: int) -> Array:
        """The samples of a window inside the image."""
        return self.values[:, top:bottom, left:right]


def read_window(source: Windows, top: int, left: int, bottom: int, right: int) -> Array:
    """A window that may reach beyond the image, which is continued by its edge there."""
    _, height, width = source.shape
    inside = (max(top, 0), max(left, 0), min(bottom, height), min(right, width))
    values = source.read(*inside)
    beyond = ((inside[0] - top, bottom - inside[2]), (inside[1] - left, right - inside[3]))
    return np.pad(values, ((0, 0), *beyond), mode="edge") if any(map(any, beyond)) else values
