"""G = R^d ⋊ H, derived from any H (eq. semiproduct): a group like any other, with splines, grids and checks."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .._torch import real
from .base import Group
from .linear import apply


class Element(NamedTuple):
    """An element g = (x, h) of R^d ⋊ H: first turn and scale by h, then move by x."""

    x: Tensor
    h: Tensor


class Semidirect(Group):
    """The affine group R^d ⋊ H of a group H that acts linearly: SE(2) is `Semidirect(SO2())`.

    Elements are x and then h, flattened: `(*batch, d + n)`; algebra vectors are (v, a) with v in R^d. With A the matrix
    by which a acts on R^d, Exp(v, a) = (φ(A) v, Exp a), φ(A) = ∫₀¹ e^{tA} dt. If H has a chart instead of Exp, so does
    G, with φ = I.
    """

    def __init__(self, h: Group) -> None:
        if not isinstance(h, Group) or h.quotient_of is not None:
            raise ValueError(f"Semidirect: {h!r} is not a group, must be one such as SO2()")
        self.h, self.space_dim = h, h.space_dim
        self.dim = h.space_dim + h.dim
        self.size = math.prod(h.element_shape)
        self.element_shape = (h.space_dim + self.size,)
        self.chart = h.chart
        with real():
            origin = torch.zeros(h.dim, dtype=torch.float64)
            if h.act(h.exp(origin + 0.1), torch.zeros(h.space_dim, dtype=torch.float64)).abs().max() > 1e-12:
                raise ValueError(f"Semidirect: {h!r} moves the origin of R^{h.space_dim}, must act linearly")
            slopes = torch.autograd.functional.jacobian(lambda a: h.matrix(h.exp(a)), origin)
            self.generators = slopes.movedim(-1, 0).contiguous()  # (dim H, d, d): how the algebra of H acts

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        """Return (x, h) · (x′, h′) = (x + h ⊙ x′, h · h′)."""
        one, other = self.split(g), self.split(h)
        return self.join(one.x + self.h.act(one.h, other.x), self.h.product(one.h, other.h))

    def inverse(self, h: Tensor) -> Tensor:
        """Return (−h⁻¹ ⊙ x, h⁻¹)."""
        g = self.split(h)
        back = self.h.inverse(g.h)
        return self.join(-self.h.act(back, g.x), back)

    def exp(self, a: Tensor) -> Tensor:
        v, a = a.split([self.space_dim, self.h.dim], -1)
        return self.join(v if self.chart else apply(self._mean(a), v), self.h.exp(a))

    def log(self, h: Tensor) -> Tensor:
        g = self.split(h)
        a = self.h.log(g.h)
        v = g.x if self.chart else torch.linalg.solve(self._mean(a), g.x.unsqueeze(-1)).squeeze(-1)
        return torch.cat((v, a), -1)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        """Return g ⊙ x′ = h ⊙ x′ + x on points of R^d."""
        g = self.split(h)
        return self.h.act(g.h, x) + g.x

    def contains(self, h: Tensor) -> Tensor:
        """Translations are finite, and the rest is an element of H."""
        g = self.split(h)
        return g.x.isfinite().all(-1) & self.h.contains(g.h)

    def component(self, h: Tensor) -> Tensor:
        return self.h.component(self.split(h).h)

    def representatives(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        rest = self.h.representatives(dtype=dtype, device=device)
        return self.join(rest.new_zeros(self.space_dim), rest)

    def split(self, g: Tensor) -> Element:
        """Return (x, h)."""
        x, h = g.split([self.space_dim, self.size], -1)
        return Element(x, h.unflatten(-1, self.h.element_shape))

    def join(self, x: Tensor, h: Tensor) -> Tensor:
        """Return the element (x, h) as one tensor; leading dimensions broadcast."""
        batch = torch.broadcast_shapes(x.shape[:-1], self.h.batch_shape(h))
        h = h.expand(*batch, *self.h.element_shape).reshape(*batch, self.size)
        return torch.cat((x.expand(*batch, -1), h), -1)

    def _mean(self, a: Tensor) -> Tensor:
        """Return φ(A), the upper right block of the exponential of [[A, I], [0, 0]]."""
        d = self.space_dim
        matrix = torch.einsum("...i,ijk->...jk", a, self.generators.to(a))
        eye = torch.eye(d, dtype=a.dtype, device=a.device).expand_as(matrix)
        zero = torch.zeros_like(matrix)
        block = torch.cat((torch.cat((matrix, eye), -1), torch.cat((zero, zero), -1)), -2)
        return torch.linalg.matrix_exp(block)[..., :d, d:]

    def __repr__(self) -> str:
        return f"Semidirect({self.h!r})"
