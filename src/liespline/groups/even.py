"""What `uniform` grids are made of, shared by the groups that have one."""

import torch
from torch import Tensor

from .._check import whole
from .base import Even, Group


def count(group: Group, n: int, spacing: object) -> int:
    """Return n, a whole number, from which the step follows."""
    if spacing is not None:
        raise ValueError(f"uniform: spacing = {spacing} for {group!r}, which takes none")
    return whole(f"uniform of {group!r}", "n", n)


def steps(n: int, step: float) -> Tensor:
    """Return 0, step, 2·step, …, `(n, 1)`."""
    return step * torch.arange(n, dtype=torch.float64).unsqueeze(-1)


def constant(n: int, value: float) -> Tensor:
    """Return n equal weights."""
    return torch.full((n,), value, dtype=torch.float64)


def orbit(group: Group, elements: Tensor) -> Even:
    """Return elements that all see the others at the same distances, with equal shares of the group's volume."""
    assert group.volume is not None
    distance = group.offset(elements[:1], elements[1:]).norm(dim=-1)
    return Even(elements, constant(len(elements), group.volume / len(elements)), float(distance.min()))
