"""Rotations and reflections of space."""

import math

import torch
from torch import Tensor

from . import even
from .base import Even, Group
from .linear import apply
from .polyhedra import polyhedral
from .so3 import SO3


class O3(Group):
    """Orthogonal matrices `(*batch, 3, 3)`: every one is a rotation R or −R, which are the two components."""

    dim = 3
    space_dim = 3
    element_shape = (3, 3)
    volume = 16 * math.pi**2

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g @ h

    def inverse(self, h: Tensor) -> Tensor:
        return h.transpose(-1, -2)

    def exp(self, a: Tensor) -> Tensor:
        return SO3().exp(a)

    def log(self, h: Tensor) -> Tensor:
        sign = torch.linalg.det(h).detach().sign().unsqueeze(-1).unsqueeze(-1)
        return SO3().log(sign * h)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return apply(h, x)

    def component(self, h: Tensor) -> Tensor:
        return (torch.linalg.det(h) < 0).long()

    def representatives(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        eye = torch.eye(3, dtype=dtype, device=device)
        return torch.stack((eye, -eye))

    def contains(self, h: Tensor) -> Tensor:
        """Orthogonal matrices have orthonormal columns."""
        gram = h.transpose(-1, -2) @ h - torch.eye(3, dtype=h.dtype, device=h.device)
        return gram.abs().amax((-1, -2)) < 1e-3

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Return the rotations of a Platonic solid and their negatives: n = 24, 48 (the cube's symmetries) or 120."""
        if even.count(self, n, spacing) not in (24, 48, 120):
            raise ValueError(f"uniform: n = {n} for {self!r}; there is 24, 48 or 120 (or repulsion for any even n)")
        rotations = polyhedral(n // 2)
        return even.orbit(self, torch.cat((rotations, -rotations)))
