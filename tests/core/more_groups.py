"""Groups made of groups, as a user might: on axes side by side, and in other coordinates."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from liespline import Group


class Beside(Group):
    """H₁ × H₂ on R^d₁ × R^d₂, each on its own axes, such as rotations about z and scalings along it.

    An element is one of each, flattened and put one after the other.
    """

    def __init__(self, first: Group, second: Group) -> None:
        self.first, self.second = first, second
        self.dim, self.space_dim = first.dim + second.dim, first.space_dim + second.space_dim
        self.element_shape = (math.prod(first.element_shape) + math.prod(second.element_shape),)

    def parts(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Split an element into its two."""
        sizes = [math.prod(g.element_shape) for g in (self.first, self.second)]
        one, other = h.split(sizes, -1)
        return one.unflatten(-1, self.first.element_shape), other.unflatten(-1, self.second.element_shape)

    def _joined(self, one: Tensor, other: Tensor) -> Tensor:
        one, other = (
            h.flatten(h.ndim - len(group.element_shape)) for group, h in ((self.first, one), (self.second, other))
        )
        batch = torch.broadcast_shapes(one.shape[:-1], other.shape[:-1])
        return torch.cat((one.expand(*batch, -1), other.expand(*batch, -1)), -1)

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        (g1, g2), (h1, h2) = self.parts(g), self.parts(h)
        return self._joined(self.first.product(g1, h1), self.second.product(g2, h2))

    def inverse(self, h: Tensor) -> Tensor:
        one, other = self.parts(h)
        return self._joined(self.first.inverse(one), self.second.inverse(other))

    def exp(self, a: Tensor) -> Tensor:
        one, other = a.split([self.first.dim, self.second.dim], -1)
        return self._joined(self.first.exp(one), self.second.exp(other))

    def log(self, h: Tensor) -> Tensor:
        one, other = self.parts(h)
        return torch.cat((self.first.log(one), self.second.log(other)), -1)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        one, other = self.parts(h)
        here, there = x.split([self.first.space_dim, self.second.space_dim], -1)
        moved = self.first.act(one, here), self.second.act(other, there)
        batch = torch.broadcast_shapes(*(points.shape[:-1] for points in moved))
        return torch.cat([points.expand(*batch, -1) for points in moved], -1)


class Conjugate(Group):
    """A H A⁻¹: the same group acting in other coordinates, such as turns along ellipses."""

    def __init__(self, group: Group, matrix: tuple[tuple[float, ...], ...]) -> None:
        self.group, self.coordinates = group, matrix
        self.dim, self.space_dim, self.element_shape = group.dim, group.space_dim, group.element_shape
        self.period = group.period  # type: ignore[misc]

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return self.group.product(g, h)

    def inverse(self, h: Tensor) -> Tensor:
        return self.group.inverse(h)

    def exp(self, a: Tensor) -> Tensor:
        return self.group.exp(a)

    def log(self, h: Tensor) -> Tensor:
        return self.group.log(h)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        matrix = x.new_tensor(self.coordinates)
        moved = self.group.act(h, torch.linalg.solve(matrix, x.unsqueeze(-1)).squeeze(-1))
        return (matrix @ moved.unsqueeze(-1)).squeeze(-1)
