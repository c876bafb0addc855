"""Groups made of groups, as a user might: products, conjugates, and a semi-direct product."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from liespline import Group


class _Pair(Group):
    """H₁ × H₂: an element of each, flattened and put one after the other."""

    def __init__(self, first: Group, second: Group, space_dim: int) -> None:
        self.first, self.second, self.space_dim = first, second, space_dim
        self.dim = first.dim + second.dim
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


class Together(_Pair):
    """H₁ × H₂ on one R^d, for actions that commute, such as turning and scaling."""

    def __init__(self, first: Group, second: Group) -> None:
        super().__init__(first, second, first.space_dim)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        one, other = self.parts(h)
        return self.first.act(one, self.second.act(other, x))


class Beside(_Pair):
    """H₁ × H₂ on R^d₁ × R^d₂, each on its own axes, such as turning about z and scaling along it."""

    def __init__(self, first: Group, second: Group) -> None:
        super().__init__(first, second, first.space_dim + second.space_dim)

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


class Affine(Group):
    """R ⋊ R⁺, shifts and scalings of a line, acting on R² by [[s, t], [0, 1]]; elements are (s, t)."""

    dim = 2
    space_dim = 2
    element_shape = (2,)

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return torch.stack((g[..., 0] * h[..., 0], g[..., 0] * h[..., 1] + g[..., 1]), -1)

    def inverse(self, h: Tensor) -> Tensor:
        return torch.stack((1 / h[..., 0], -h[..., 1] / h[..., 0]), -1)

    def exp(self, a: Tensor) -> Tensor:
        return torch.stack((a[..., 0].exp(), a[..., 1] * _mean_exp(a[..., 0])), -1)

    def log(self, h: Tensor) -> Tensor:
        a = h[..., 0].log()
        return torch.stack((a, h[..., 1] / _mean_exp(a)), -1)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        first = h[..., 0] * x[..., 0] + h[..., 1] * x[..., 1]
        return torch.stack((first, x[..., 1].expand_as(first)), -1)


def _mean_exp(a: Tensor) -> Tensor:
    """Return (e^a − 1) / a, by its series where a is small."""
    near = a.abs() < 1e-2
    away = torch.where(near, 1.0, a)
    series = 1 + a / 2 * (1 + a / 3 * (1 + a / 4 * (1 + a / 5 * (1 + a / 6))))
    return torch.where(near, series, away.expm1() / away)
