"""A group known only by its generators: Exp and Log are those of matrices."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._torch import readable
from .base import Group
from .linear import apply, logarithm


class MatrixGroup(Group):
    """The group of d×d matrices Exp(Σ a_i G_i) from its generators `(dim, d, d)`, acting on R^d by multiplication.

    Elements are matrices `(*batch, d, d)`. The generators have to be independent and their brackets G_i G_j − G_j G_i
    to lie in their span. An axis that closes, and that the others do not move, is periodic. Log is the principal
    logarithm: an element that has none, or that turns by π or more, raises ValueError.
    """

    def __init__(self, generators: Tensor | Sequence[Any]) -> None:
        g = torch.as_tensor(generators, dtype=torch.float64, device="cpu").detach().clone()
        if g.ndim != 3 or g.shape[1] != g.shape[2] or 0 in g.shape or not g.isfinite().all():
            raise ValueError(f"MatrixGroup: generators have shape {tuple(g.shape)}, must be (dim, d, d) and finite")
        self.generators = g
        self.dim, self.space_dim = g.shape[:2]
        self.element_shape = (self.space_dim, self.space_dim)
        singular = torch.linalg.svdvals(g.flatten(1))
        if self.dim > self.space_dim**2 or singular[-1] < 1e-9 * singular[0]:
            raise ValueError(f"MatrixGroup: the {self.dim} generators depend on each other, must be independent")
        self.reading = torch.linalg.pinv(g.flatten(1).T)  # (dim, d²): matrix to coordinates, by least squares
        for i, j in itertools.combinations(range(self.dim), 2):
            bracket = g[i] @ g[j] - g[j] @ g[i]
            if not self._spanned(bracket, g[i].norm() * g[j].norm()):
                raise ValueError(
                    f"MatrixGroup: the bracket [G_{i}, G_{j}] = G_{i} G_{j} − G_{j} G_{i} = {bracket.tolist()} leaves "
                    "the span of the generators; add it to them"
                )
        self.period = tuple(self._period(i) for i in range(self.dim))

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return g @ h

    def inverse(self, h: Tensor) -> Tensor:
        return torch.linalg.inv(h)

    def exp(self, a: Tensor) -> Tensor:
        return torch.linalg.matrix_exp(torch.einsum("...i,ijk->...jk", a, self.generators.to(a)))

    def log(self, h: Tensor) -> Tensor:
        matrix = logarithm(h)
        a = torch.einsum("ij,...j->...i", self.reading.to(h), matrix.flatten(-2))
        if readable(h):
            self._require_logarithm(h.detach(), matrix.detach())
        return a

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        return apply(h, x)

    def contains(self, h: Tensor) -> Tensor:
        """Matrices are finite and have a positive determinant."""
        return h.flatten(-2).isfinite().all(-1) & (torch.linalg.det(h) > 0)

    def _require_logarithm(self, h: Tensor, matrix: Tensor) -> None:
        lost = ~matrix.flatten(-2).isfinite().all(-1)
        outside = ~self._spanned(matrix, 1 + matrix.abs().amax((-1, -2)), 1e6 * torch.finfo(h.dtype).eps)
        for bad, why in (
            (lost, "has no logarithm: some eigenvalue is zero or negative"),
            (outside, "is not an element: its logarithm leaves the span of the generators"),
        ):
            if bad.any():
                index = tuple(int(i) for i in bad.nonzero()[0])
                where = f"h{list(index) if index else ''} = {h[index].tolist()}"
                raise ValueError(f"MatrixGroup.log: {where} {why}; take elements nearer the identity")

    def _spanned(self, matrix: Tensor, size: Tensor, tolerance: float = 1e-9) -> Tensor:
        flat = matrix.flatten(-2)
        basis = self.generators.flatten(1).to(flat)
        rest = flat - flat @ self.reading.T.to(flat) @ basis
        return ~(rest.abs().amax(-1) > tolerance * size)

    def _period(self, i: int) -> float | None:
        """Return p with Exp(a + p e_i) = Exp a: G_i commutes with all the others, and its turns close."""
        g = self.generators
        if (g[i] @ g - g @ g[i]).abs().max() > 1e-12:
            return None
        turns = torch.linalg.eigvals(g[i])
        slowest = turns.imag.abs()[turns.imag.abs() > 1e-9]
        if turns.real.abs().max() > 1e-9 or not len(slowest):
            return None
        period = 2 * math.pi / float(slowest.min())
        once = torch.linalg.matrix_exp(period * g[i])
        return period if (once - torch.eye(self.space_dim, dtype=g.dtype)).abs().max() < 1e-9 else None

    def __repr__(self) -> str:
        d = self.space_dim
        return f"MatrixGroup({self.dim} generator{'s' * (self.dim > 1)} of {d}×{d} matrices)"
