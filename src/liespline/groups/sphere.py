"""The 2-sphere as the quotient SO(3)/SO(2) (app. B, eq. splineS2)."""

import math
from typing import ClassVar

import torch
from torch import Tensor

from . import even
from .base import Even, Group
from .linear import apply
from .polyhedra import SOLIDS, vertices
from .so3 import SO3, turn


class Sphere(Group):
    """Unit vectors n(β, γ) = R_{0,β,γ} z of R³, elements `(*batch, 3)`, tangent vectors `(*batch, 2)` at z.

    A quotient has no product of its own: the point n stands for the rotation R_{0,β,γ} that carries z to it, and
    that rotation acts on points and on other elements. Kernels on R³ ⋊ S² are made symmetric about z, so the choice
    of that rotation among all that carry z to n does not matter (theorem, item 3).
    """

    dim = 2
    space_dim = 3
    element_shape = (3,)
    volume = 4 * math.pi
    quotient_of: ClassVar[Group | None] = SO3()

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return self.act(g, h)

    def inverse(self, h: Tensor) -> Tensor:
        """Return R⁻¹ z, where the rotation of h takes the reference axis back to."""
        radius = _planar_radius(h)
        return torch.stack((-radius, torch.zeros_like(radius), h[..., 2]), -1)

    def exp(self, a: Tensor) -> Tensor:
        angle, near = _safe_norm(a)
        sinc = torch.where(near, 1 - angle.square() / 6, angle.sin() / angle)
        return torch.stack((sinc * a[..., 1], -sinc * a[..., 0], angle.cos()), -1)

    def log(self, h: Tensor) -> Tensor:
        """Return Log R_{−γ,β,γ} = β (−sin γ, cos γ), the rotation vector without its vanishing third component."""
        radius, near = _safe_norm(h[..., :2])
        beta = torch.atan2(radius, h[..., 2])
        # β / sin β; at the pole itself it is 1, and at the antipode Log takes the direction γ = 0. There any direction
        # is as good, but rounding must not choose it: splines that reach the antipode differ between directions.
        opposite = (radius < 64 * torch.finfo(h.dtype).eps) & (h[..., 2] < 0)
        ratio = torch.where(near | opposite, 1.0, beta / radius)
        log = torch.stack((-ratio * h[..., 1], ratio * h[..., 0]), -1)
        antipode = torch.stack((torch.zeros_like(beta), beta), -1)
        return torch.where(opposite.unsqueeze(-1), antipode, log)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return apply(self.rotation(h), x)

    def relative(self, g: Tensor, h: Tensor) -> Tensor:
        """Return R_g⁻¹ h (a quotient has to say this itself)."""
        return self.pull(g, h)

    def pull(self, h: Tensor, x: Tensor) -> Tensor:
        """Return R_h⁻¹ x."""
        return apply(self.rotation(h).transpose(-1, -2), x)

    def contains(self, h: Tensor) -> Tensor:
        """Points of the sphere have length 1."""
        return (h.square().sum(-1) - 1).abs() < 1e-3

    def uniform_elements(self, n: int, spacing: float | None) -> Even:
        """Return the vertices of a Platonic solid (n = 4, 6, 8, 12, 20)."""
        if even.count(self, n, spacing) not in SOLIDS:
            raise ValueError(f"uniform: n = {n} for {self!r}; there is 4, 6, 8, 12 or 20 (or repulsion for any n)")
        return even.orbit(self, vertices(n))

    def rotation(self, h: Tensor) -> Tensor:
        """Return R_{0,β,γ}, the element of SO(3) that stands for h, `(*batch, 3, 3)`."""
        radius, near = _safe_norm(h[..., :2])
        cos = torch.where(near, 1.0, h[..., 0] / radius)
        sin = torch.where(near, 0.0, h[..., 1] / radius)
        z, zero = h[..., 2], torch.zeros_like(radius)
        radius = torch.where(near, 0.0, radius)
        rows = (cos * z, -sin, cos * radius, sin * z, cos, sin * radius, -radius, zero, z)
        return torch.stack(rows, -1).unflatten(-1, (3, 3))

    def from_angles(self, beta: Tensor, gamma: Tensor) -> Tensor:
        """Return n(β, γ) for angles of shape `(*batch,)`."""
        return torch.stack((beta.sin() * gamma.cos(), beta.sin() * gamma.sin(), beta.cos()), -1)

    def to_angles(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return β in [0, π] and γ in [0, 2π) of points on the sphere."""
        return torch.atan2(_planar_radius(h), h[..., 2]), turn(torch.atan2(h[..., 1], h[..., 0]))


def _safe_norm(a: Tensor) -> tuple[Tensor, Tensor]:
    """Return ‖a‖ kept away from 0, where its gradient is undefined, and where that was needed."""
    square = a.square().sum(-1)
    # Relative to 1, the size of the sphere: below this the series used instead is exact to rounding.
    near = square < torch.finfo(a.dtype).eps ** 2
    return torch.where(near, torch.finfo(a.dtype).eps ** 2, square).sqrt(), near


def _planar_radius(h: Tensor) -> Tensor:
    radius, near = _safe_norm(h[..., :2])
    return torch.where(near, 0.0, radius)
