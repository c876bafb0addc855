"""The step before a stride, which keeps it symmetric about the image's centre."""

from __future__ import annotations

from torch import Tensor, nn

from ..functional import Padding, disc_pad


class Centre(nn.Module):
    """Bring images to sizes that a stride divides evenly about their centre: (size − 1) a multiple of it.

    Samples 0, 2, 4, … of an even axis lie half a sample off its centre, and those of a turned image off to another
    side: a network that keeps them is not equivariant. Such an axis is read at the points between its samples first;
    with `disc=True` those outside of the largest disc do not count, as in layers with `padding_mode="disc"`.
    """

    def __init__(self, stride: int, *, disc: bool = False) -> None:
        super().__init__()
        self.stride, self.disc = stride, disc

    def forward(self, x: Tensor) -> Tensor:
        """Average neighbours along an axis of `(B, C, *space)` that has one sample too many, crop two on both sides."""
        if self.disc:
            x = disc_pad(x, Padding(*2 * ((0,) * (x.ndim - 2),)))
        for axis in range(2, x.ndim):
            extra = (x.shape[axis] - 1) % self.stride
            if extra % 2:
                size = x.shape[axis] - 1
                x = (x.narrow(axis, 0, size) + x.narrow(axis, 1, size)) / 2
            if extra > 1:
                x = x.narrow(axis, extra // 2, x.shape[axis] - 2 * (extra // 2))
        return x
