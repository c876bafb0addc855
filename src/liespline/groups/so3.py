"""Rotations of space (app. SO3)."""

import math
from typing import Any

import torch
from torch import Tensor

from . import even
from .base import Even, Group
from .linear import apply
from .polyhedra import polyhedral


class SO3(Group):
    """Rotations of R³; elements are matrices `(*batch, 3, 3)`, algebra vectors are rotation vectors (axis · angle)."""

    dim = 3
    space_dim = 3
    element_shape = (3, 3)
    volume = 8 * math.pi**2

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g @ h

    def inverse(self, h: Tensor) -> Tensor:
        return h.transpose(-1, -2)

    def exp(self, a: Tensor) -> Tensor:
        return _roma().rotvec_to_rotmat(a)

    def log(self, h: Tensor) -> Tensor:
        return _roma().rotmat_to_rotvec(h)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return apply(h, x)

    def contains(self, h: Tensor) -> Tensor:
        """Rotation matrices have orthonormal columns and determinant +1."""
        gram = (h.transpose(-1, -2) @ h - torch.eye(3, dtype=h.dtype, device=h.device)).abs().amax((-1, -2))
        return (gram < 1e-3) & (torch.linalg.det(h) > 0)

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Return the rotations of the tetrahedron, octahedron or icosahedron (n = 12, 24, 60)."""
        if even.count(self, n, spacing) not in (12, 24, 60):
            raise ValueError(f"uniform: n = {n} for {self!r}; there is 12, 24 or 60 (or repulsion for any n)")
        return even.orbit(self, polyhedral(n))

    def from_euler(self, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
        """Return R_{α,β,γ} = R_{z,γ} R_{y,β} R_{z,α} (the paper's ZYZ order) for angles of shape `(*batch,)`."""
        return _about_z(gamma) @ _about_y(beta) @ _about_z(alpha)

    def to_euler(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ZYZ angles α, γ in [0, 2π) and β in [0, π]; α = 0 where only the sum of α and γ is defined."""
        sine = torch.hypot(h[..., 0, 2], h[..., 1, 2])
        beta = torch.atan2(sine, h[..., 2, 2])
        pole = sine < 8 * torch.finfo(h.dtype).eps
        alpha = torch.where(pole, 0.0, torch.atan2(h[..., 2, 1], -h[..., 2, 0]))
        # At a pole R = R_{z,γ} R_{y,β}, whose second column is (−sin γ, cos γ, 0).
        gamma = torch.where(pole, torch.atan2(-h[..., 0, 1], h[..., 1, 1]), torch.atan2(h[..., 1, 2], h[..., 0, 2]))
        return turn(alpha), beta, turn(gamma)


def _roma() -> Any:
    import roma  # here and not above: it loads torch's compiler, which takes seconds that only rotations need

    return roma


def turn(angle: Tensor) -> Tensor:
    """Return the angle in [0, 2π)."""
    angle = torch.remainder(angle, 2 * math.pi)
    return torch.where(angle >= 2 * math.pi, 0.0, angle)  # remainder rounds tiny negative angles up to 2π


def _about_z(angle: Tensor) -> Tensor:
    c, s, o, i = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack((c, -s, o, s, c, o, o, o, i), -1).unflatten(-1, (3, 3))


def _about_y(angle: Tensor) -> Tensor:
    c, s, o, i = angle.cos(), angle.sin(), torch.zeros_like(angle), torch.ones_like(angle)
    return torch.stack((c, o, s, o, i, o, -s, o, c), -1).unflatten(-1, (3, 3))
