"""Splines on a grid that ends, as scales do."""

from __future__ import annotations

import torch
from torch import Tensor

from ..splines import SplineBasis

BOUNDARIES = ("zero", "renormalise")
_SEEN = 1e-6  # of a spline: what the grid holds of it is a rounding error below that


def renormalised(
    samples: Tensor, basis: SplineBasis, points: Tensor, whole: float, centres: Tensor | None = None
) -> Tensor:
    """Return samples on H with each spline divided by the share of its integral that lies on the grid.

    out[h, h̃, j] = w(h̃) B_j(h⁻¹h̃) ∫B / Σ_h̃ w(h̃) B_j(h⁻¹h̃): a function that is constant along H has the same response at
    all elements h, those at the ends too. A spline that lies beyond the end altogether reads the element nearest to its
    centre. Samples `(A, 1, N, N_k)` at points `(A, N, *shape)`, as `sample` returns them; `whole` is `basis.integral`.
    """
    share = samples.sum(2, keepdim=True) / whole  # (A, 1, 1, N_k)
    seen = share > _SEEN
    group = basis.grid.group
    centres = basis.grid.elements.to(points) if centres is None else centres.detach()
    steps = group.offset(centres, points.detach().unsqueeze(-1 - len(group.element_shape)))  # (A, N, N_k, dim)
    distance = (steps / steps.new_tensor(basis.widths)).norm(dim=-1)
    nearest = (distance <= distance.amin(1, keepdim=True) + 1e-6) & distance.isfinite()  # none on another component
    beyond = nearest / nearest.sum(1, keepdim=True).clamp_min(1)
    return torch.where(seen, samples / torch.where(seen, share, 1), whole * beyond.unsqueeze(1).to(samples))
