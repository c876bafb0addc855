"""Splines on a grid that ends, as scales do."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..grids import Grid
from ..splines import SplineBasis

BOUNDARIES = ("zero", "renormalise", "replicate")
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


def replicated(samples: Tensor, basis: SplineBasis, grid: Grid, out_grid: Grid) -> Tensor:
    """Return samples on H as on a grid that goes on beyond its ends, where features are those of the last elements.

    It goes on by its own steps along the axis of the algebra that does not close, such as that of scales. Raises
    ValueError where there are several, or none.
    """
    group, open_axes = grid.group, [axis for axis, period in enumerate(grid.group.periods) if period is None]
    if len(open_axes) != 1:
        raise ValueError(
            f'h_boundary = "replicate" goes on along the axis that does not close, and {group!r} has {len(open_axes)}: '
            'take "renormalise"'
        )
    axis = open_axes[0]
    step, place = grid.steps[axis], group.log(grid.elements)[:, axis]
    reach = (basis.degree + 1) / 2 * basis.widths[axis] + float(group.log(basis.grid.elements)[:, axis].abs().max())
    count = math.ceil((reach + float(place.max() - place.min())) / step)
    found = samples.clone()
    for direction, end in ((1, place.max()), (-1, place.min())):
        last = (place - end).abs() < 1e-6 * step
        for beyond in range(1, count + 1):
            move = torch.zeros(group.dim, dtype=torch.float64)
            move[axis] = direction * beyond * step
            elements = group.product(grid.elements[last], group.exp(move))
            points = group.relative(out_grid.elements.unsqueeze(1), elements)
            found[:, 0, last] += basis(points) * grid.weights[last].unsqueeze(-1)
    return found
