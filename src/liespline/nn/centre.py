"""The step before every second sample is kept, on even sizes."""

from __future__ import annotations

from torch import Tensor, nn


class Centre(nn.Module):
    """Bring each even space axis to the points between its samples, so that every second sample is centred.

    Samples 0, 2, 4, … of an even axis lie half a sample off its centre, and those of a turned image off to another
    side: a network that keeps them is not equivariant. `first` is the first space axis: 2 in images, 3 in feature maps.
    """

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first

    def forward(self, x: Tensor) -> Tensor:
        """Average neighbours along the even axes."""
        for axis in range(self.first, x.ndim):
            size = x.shape[axis]
            if size % 2 == 0:
                x = (x.narrow(axis, 0, size - 1) + x.narrow(axis, 1, size - 1)) / 2
        return x
