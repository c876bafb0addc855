"""A group of the plane about one axis of a volume."""

from typing import Any

import torch
from torch import Tensor

from .base import Even, Group


class Axial(Group):
    """A group of the plane, such as SO(2) or O(2), that acts on R³ across one axis and leaves that one as it is.

    For volumes with one direction of their own: the length of the body, gravity, slices that are thicker than their
    pixels. `axis` is that of the volume; elements are those of the plane's group, which acts on the other two in their
    order, as on (row, column). Windows and steps may differ along the axis: `kernel_size=(3, 5, 5)` for `axis=0`.
    """

    space_dim = 3

    def __init__(self, plane: Group, axis: int = 2) -> None:
        if not isinstance(plane, Group) or plane.space_dim != 2 or plane.quotient_of is not None:
            raise ValueError(f"Axial: plane = {plane!r}, must be a group of the plane such as SO2() or O2()")
        if axis not in (0, 1, 2):
            raise ValueError(f"Axial: axis = {axis}, must be 0, 1 or 2, an axis of the volume")
        self.plane, self.axis = plane, axis
        self.dim, self.element_shape = plane.dim, plane.element_shape
        self.period, self.volume, self.chart = plane.period, plane.volume, plane.chart

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return self.plane.product(g, h)

    def inverse(self, h: Tensor) -> Tensor:
        return self.plane.inverse(h)

    def exp(self, a: Tensor) -> Tensor:
        return self.plane.exp(a)

    def log(self, h: Tensor) -> Tensor:
        return self.plane.log(h)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        across = self.plane.act(h, x[..., [other for other in range(3) if other != self.axis]])
        coordinates = list(across.unbind(-1))
        coordinates.insert(self.axis, x[..., self.axis].expand(across.shape[:-1]))
        return torch.stack(coordinates, -1)

    def component(self, h: Tensor) -> Tensor:
        return self.plane.component(h)

    def representatives(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        return self.plane.representatives(dtype=dtype, device=device)

    def contains(self, h: Tensor) -> Tensor:
        """Elements are those of the plane's group."""
        return self.plane.contains(h)

    def uniform_elements(self, n: Any, spacing: Any) -> Even:
        """Return those of the plane's group."""
        return self.plane.uniform_elements(n, spacing)

    def __repr__(self) -> str:
        return f"Axial({self.plane!r}, axis={self.axis})"
