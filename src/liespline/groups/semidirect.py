"""G = R^d ⋊ H, derived from any H (eq. semiproduct)."""

from __future__ import annotations

import itertools
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

    def transform(self, g: Element, f: Tensor, elements: Tensor | None = None) -> Tensor:
        """Return L_g f = L_x L_h f, (L_g f)(y, k) = f(h⁻¹ ⊙ (y − x), h⁻¹k), of a sampled function (eq. splitting).

        f is an image `(*batch, *space)`, or with `elements` `(N, *element_shape)` a feature map `(*batch, N, *space)`.
        Space has its origin at the centre of the tensor and one sample as its unit. There f is interpolated linearly
        and is 0 outside; on H it is known at the elements only, so it is 0 where h⁻¹k is none of them.
        """
        d = self.h.space_dim
        if elements is None:
            shape, fits = f"(*batch, *space) with {d} axes of space", f.ndim >= d
        else:
            shape, fits = f"(*batch, {len(elements)}, *space)", f.ndim > d and f.shape[-1 - d] == len(elements)
        if not fits:
            raise ValueError(f"Semidirect.transform: f has shape {tuple(f.shape)}, must be {shape}")
        space = f.shape[f.ndim - d :]
        centre = (torch.tensor(space, dtype=g.x.dtype, device=g.x.device) - 1) / 2
        axes = [torch.arange(n, dtype=g.x.dtype, device=g.x.device) for n in space]
        points = torch.cartesian_prod(*axes).reshape(-1, d) - centre
        moved = _interpolate(f, self.act(self.inverse(g), points) + centre).reshape(f.shape)
        if elements is None:
            return moved
        back = self.h.offset(self.h.relative(g.h, elements).unsqueeze(1), elements)  # (N, N, dim)
        match = (back.norm(dim=-1) < 1e-4).to(f)
        if not match.any():
            raise ValueError(f"Semidirect.transform: g.h = {g.h.tolist()} carries none of the elements to another")
        return torch.einsum("ij,...jp->...ip", match, moved.flatten(-d)).reshape(f.shape)

    def __repr__(self) -> str:
        return f"Semidirect({self.h!r})"


def _interpolate(f: Tensor, at: Tensor) -> Tensor:
    """Return f `(*batch, *space)` at P points given in samples from its first one, `(*batch, P)`; 0 outside."""
    d = at.shape[-1]
    size = torch.tensor(f.shape[f.ndim - d :], device=at.device)
    strides = torch.tensor([size[i + 1 :].prod() for i in range(d)], device=at.device)
    flat, low = f.flatten(-d), at.floor()
    total = f.new_zeros(())
    for corner in itertools.product((0, 1), repeat=d):
        sample = low + torch.tensor(corner, device=at.device)
        inside = ((sample >= 0) & (sample < size)).all(-1)
        weight = (1 - (at - sample).abs()).prod(-1) * inside
        index = (sample.long().clamp_min(0).minimum(size - 1) * strides).sum(-1)
        total = total + flat[..., index] * weight.to(f)
    return total
