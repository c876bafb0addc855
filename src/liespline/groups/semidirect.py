"""G = R^d ⋊ H, derived from any H (eq. semiproduct)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .base import Group


class Element(NamedTuple):
    """An element g = (x, h) of R^d ⋊ H: first turn and scale by h, then move by x."""

    x: Tensor
    h: Tensor


class Semidirect:
    """The affine group R^d ⋊ H of any group H: its product, inverse, identity and action follow from H's."""

    def __init__(self, h: Group) -> None:
        self.h = h

    def product(self, g: Element, other: Element) -> Element:
        """Return (x, h) · (x′, h′) = (x + h ⊙ x′, h · h′)."""
        return Element(g.x + self.h.act(g.h, other.x), self.h.product(g.h, other.h))

    def inverse(self, g: Element) -> Element:
        """Return (−h⁻¹ ⊙ x, h⁻¹)."""
        back = self.h.inverse(g.h)
        return Element(-self.h.act(back, g.x), back)

    def identity(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Element:
        """Return (0, e)."""
        origin = torch.zeros(self.h.space_dim, dtype=dtype, device=device)
        return Element(origin, self.h.identity(dtype=dtype, device=device))

    def act(self, g: Element, x: Tensor) -> Tensor:
        """Return g ⊙ x′ = h ⊙ x′ + x on points of R^d."""
        return self.h.act(g.h, x) + g.x

    def __repr__(self) -> str:
        return f"Semidirect({self.h!r})"
