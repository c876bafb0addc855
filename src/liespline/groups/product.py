"""Direct products of groups, such as turns and zooms together."""

import math
from typing import Any

import torch
from torch import Tensor

from .base import Even, Group


class Product(Group):
    """H₁ × H₂ × …, for groups whose actions on the same R^d commute: `Product(SO2(), Scale(2))` is the H of SIM(2).

    An element is one of each factor, flattened and put one after the other: `(*batch, n₁ + n₂ + …)`; so are algebra
    vectors. Period and component are those of the factors.
    """

    factors: tuple[Group, ...]

    def __init__(self, *factors: Group) -> None:
        if len(factors) < 2:
            raise ValueError(f"Product: {len(factors)} groups, must be two or more")
        for group in factors:
            if not isinstance(group, Group) or group.quotient_of is not None:
                raise ValueError(f"Product: {group!r} is not a group, must be one such as SO2()")
            if group.space_dim != factors[0].space_dim:
                raise ValueError(f"Product: {group!r} acts on R^{group.space_dim}, {factors[0]!r} on another space")
        # A product of products is the product of all
        self.factors = tuple(g for own in factors for g in (own.factors if isinstance(own, Product) else (own,)))
        self.space_dim = factors[0].space_dim
        self.dim = sum(group.dim for group in self.factors)
        self.sizes = [math.prod(group.element_shape) for group in self.factors]
        self.element_shape = (sum(self.sizes),)
        self.components = [len(group.representatives()) for group in self.factors]
        self.period = tuple(p for group in self.factors for p in group.periods)
        volumes = [group.volume for group in self.factors]
        self.volume = None if None in volumes else math.prod(v for v in volumes if v is not None)
        self.chart = any(group.chart for group in self.factors)
        _require_commuting(self.factors)

    def product(self, g: Tensor, h: Tensor) -> Tensor:
        return self.join(*(o.product(x, y) for o, x, y in zip(self.factors, self.split(g), self.split(h), strict=True)))

    def inverse(self, h: Tensor) -> Tensor:
        return self.join(*(o.inverse(x) for o, x in zip(self.factors, self.split(h), strict=True)))

    def exp(self, a: Tensor) -> Tensor:
        own = a.split([group.dim for group in self.factors], -1)
        return self.join(*(o.exp(x) for o, x in zip(self.factors, own, strict=True)))

    def log(self, h: Tensor) -> Tensor:
        return torch.cat([o.log(x) for o, x in zip(self.factors, self.split(h), strict=True)], -1)

    def act(self, h: Tensor, x: Tensor) -> Tensor:
        for group, own in zip(self.factors, self.split(h), strict=True):
            x = group.act(own, x)
        return x

    def contains(self, h: Tensor) -> Tensor:
        """Each part is an element of its own factor."""
        inside = [group.contains(own) for group, own in zip(self.factors, self.split(h), strict=True)]
        return torch.stack(inside).all(0)

    def component(self, h: Tensor) -> Tensor:
        number = torch.zeros(self.batch_shape(h), dtype=torch.long, device=h.device)
        for group, own, count in zip(self.factors, self.split(h), self.components, strict=True):
            number = number * count + group.component(own)
        return number

    def representatives(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        return self._every([group.representatives(dtype=dtype, device=device) for group in self.factors])

    def uniform_elements(self, n: Any, spacing: Any) -> Even:
        """Return every combination of the factors' uniform elements, the last factor running fastest."""
        counts = n if isinstance(n, tuple | list) else (n,)
        given = (None,) * len(self.factors) if spacing is None else spacing
        for name, values in (("n", counts), ("spacing", given)):
            if not isinstance(values, tuple | list) or len(values) != len(self.factors):
                raise ValueError(
                    f"uniform: {name} = {n if name == 'n' else spacing} for {self!r}, must be a tuple of "
                    f"{len(self.factors)}, one entry per factor" + ", None where it takes none" * (name == "spacing")
                )
        grids = [Even(*g.uniform_elements(*each)) for g, *each in zip(self.factors, counts, given, strict=True)]
        weights = grids[0].weights
        for grid in grids[1:]:
            weights = (weights.unsqueeze(-1) * grid.weights).flatten()
        steps: tuple[float, ...] = ()
        for group, grid in zip(self.factors, grids, strict=True):
            steps += grid.spacing if isinstance(grid.spacing, tuple) else (grid.spacing,) * group.dim
        return Even(self._every([grid.elements for grid in grids]), weights, steps)

    def split(self, h: Tensor) -> list[Tensor]:
        """Return the element of each factor."""
        parts = h.split(self.sizes, -1)
        return [own.unflatten(-1, group.element_shape) for group, own in zip(self.factors, parts, strict=True)]

    def join(self, *parts: Tensor) -> Tensor:
        """Return the element made of one of each factor; leading dimensions broadcast."""
        batch = torch.broadcast_shapes(*(g.batch_shape(own) for g, own in zip(self.factors, parts, strict=True)))
        flat = [own.expand(*batch, *g.element_shape) for g, own in zip(self.factors, parts, strict=True)]
        return torch.cat([own.reshape(*batch, n) for own, n in zip(flat, self.sizes, strict=True)], -1)

    def _every(self, parts: list[Tensor]) -> Tensor:
        """Return all combinations, `(N₁ · N₂ · …, n₁ + n₂ + …)`."""
        index = torch.cartesian_prod(*(torch.arange(len(own)) for own in parts)).T
        return self.join(*(own[i.to(own.device)] for own, i in zip(parts, index, strict=True)))

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.factors))})"


def _require_commuting(factors: tuple[Group, ...]) -> None:
    generator = torch.Generator(device="cpu").manual_seed(0)

    def some(group: Group) -> Tensor:
        a = 0.5 * torch.randn(4, group.dim, dtype=torch.float64, generator=generator, device="cpu")
        rest = group.representatives(dtype=torch.float64, device=torch.device("cpu"))
        return group.product(group.exp(a).unsqueeze(1), rest)  # (4, K, *element_shape)

    x = torch.randn(factors[0].space_dim, dtype=torch.float64, generator=generator, device="cpu")
    for i, group in enumerate(factors):
        for other in factors[:i]:
            g, h = some(group), some(other).flatten(0, 1).unsqueeze(1).unsqueeze(1)
            if (group.act(g, other.act(h, x)) - other.act(h, group.act(g, x))).abs().max() > 1e-9:
                raise ValueError(
                    f"Product: the actions of {other!r} and {group!r} do not commute, so they form no direct product"
                )
