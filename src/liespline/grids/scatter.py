"""Elements that push each other apart on any compact group, by its own Log and Exp alone."""

import math

import torch
from torch import Tensor

from ..groups import Group, Product

_STEPS = 400


def scatter(group: Group, n: int, seed: int) -> tuple[Tensor, float]:
    """Return n elements of the component of e, far apart, and their mean distance to the nearest neighbour.

    Every element is moved along its force Σ_j (d_min/d_ij)^p · (−Log h_i⁻¹h_j)/d_ij in steps that shrink, p growing
    until only the closest pairs count.
    """
    elements = _anywhere(group, n, torch.Generator().manual_seed(seed))
    if n == 1:
        return elements, 1.0
    best, widest = elements, 0.0
    typical = (_volume(group) / n) ** (1 / group.dim)
    for step in range(_STEPS):
        offset = group.offset(elements.unsqueeze(1), elements)  # (n, n, dim): from i to j
        distance = offset.norm(dim=-1).fill_diagonal_(math.inf)
        closest = float(distance.min())
        if closest > widest:
            best, widest = elements, closest
        done = step / _STEPS
        push = (max(closest, 1e-3 * typical) / distance.clamp_min(1e-12)) ** (4 + 28 * done)
        force = -(push / distance.clamp_min(1e-12)).unsqueeze(-1) * offset.nan_to_num()
        force = force.sum(1)
        size = force.norm(dim=-1).max().clamp_min(1e-12)
        elements = group.product(elements, group.exp(0.2 * typical * (1 - done) ** 2 * force / size))
    offset = group.offset(best.unsqueeze(1), best).norm(dim=-1).fill_diagonal_(math.inf)
    return best, float(offset.min(1).values.mean())


def _volume(group: Group) -> float:
    assert group.volume is not None
    return group.volume / len(group.representatives())


def _anywhere(group: Group, n: int, generator: torch.Generator) -> Tensor:
    """Return random elements that cover the component of e."""
    if isinstance(group, Product):
        return group.join(*(_anywhere(factor, n, generator) for factor in group.factors))
    # No box of the algebra is known to cover it; a walk of long random steps forgets where it began.
    elements = group.identity(dtype=torch.float64).expand(n, *group.element_shape)
    for _ in range(8):
        move = torch.randn(n, group.dim, dtype=torch.float64, generator=generator)
        elements = group.product(elements, group.exp(2 * move))
    return elements
