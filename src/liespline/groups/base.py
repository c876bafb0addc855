"""The five methods that make a Lie group, and everything that follows from them (sections 3.1 and 3.3)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from .._check import per_axis
from . import arguments


class Even(NamedTuple):
    """Evenly spread elements `(N, *element_shape)`, their Haar weights `(N,)`, and the step along each axis."""

    elements: Tensor
    weights: Tensor
    spacing: float | tuple[float, ...]


class Group(ABC):
    """A Lie group H acting linearly on R^d: write five methods, get group convolutions.

    Elements are plain tensors `(*batch, *element_shape)`, algebra vectors `(*batch, dim)` and points
    `(*batch, space_dim)`; leading dimensions broadcast, device and dtype follow the inputs.
    """

    dim: int
    """Dimension of the group, and so of its algebra."""
    space_dim: int
    """The d of the R^d it acts on."""
    element_shape: tuple[int, ...]
    """Trailing shape of an element."""

    # ---- what a group may say beyond its five methods ----

    period: float | tuple[float | None, ...] | None = None
    """v > 0 with Exp(a + v) = Exp a along an axis of the algebra, where splines are made periodic; or one per axis."""
    volume: float | None = None
    """Haar volume of a compact group, all its components together; None for a group without end."""
    chart: bool = False
    """Whether exp and log are another smooth chart about e with the same derivative there, such as a polar one."""
    quotient_of: ClassVar[Group | None] = None
    """The group whose quotient this is (Sphere), or None for a group proper."""

    @abstractmethod
    def product(self, g: Tensor, h: Tensor) -> Tensor:
        """Return g · h."""

    @abstractmethod
    def inverse(self, h: Tensor) -> Tensor:
        """Return h⁻¹."""

    @abstractmethod
    def exp(self, a: Tensor) -> Tensor:
        """Return Exp a, the element that the algebra vector a generates."""

    @abstractmethod
    def log(self, h: Tensor) -> Tensor:
        """Return Log h, the algebra vector of h nearest zero; on another component Log(h r⁻¹), r standing for it."""

    @abstractmethod
    def act(self, h: Tensor, x: Tensor) -> Tensor:
        """Return h ⊙ x, the point x moved by h."""

    def component(self, h: Tensor) -> Tensor:
        """Return the number of the component of h, `(*batch,)`; 0 is that of the identity."""
        return torch.zeros(self.batch_shape(h), dtype=torch.long, device=h.device)

    def representatives(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        """Return one element r of every component in the order of their numbers, e first: `(K, *element_shape)`."""
        return self.identity(dtype=dtype, device=device).unsqueeze(0)

    def uniform_elements(self, n: Any, spacing: Any) -> Even:
        """Return what `uniform(group, n, spacing=spacing)` should, or raise ValueError."""
        raise ValueError(f"uniform: n = {n} for {self!r}; there is local(group, n, spacing), or a Grid of your own")

    # ---- derived ----

    def contains(self, h: Tensor) -> Tensor:
        """Entries of elements are finite."""  # errors quote this line: a group that knows more says more
        inside = h.isfinite()
        for _ in self.element_shape:
            inside = inside.all(-1)
        return inside

    def require(self, where: str, h: Tensor) -> None:
        """Raise ValueError if some of h, which the caller knows as `where`, do not lie in the group."""
        inside = self.contains(h)
        if not inside.all():
            index = tuple(int(i) for i in (~inside).nonzero()[0])
            rule = f": {(type(self).contains.__doc__ or 'see its method contains').strip()}"
            raise ValueError(
                f"{where}{list(index) if index else ''} = {h[index].tolist()} is not an element of {self!r}{rule}"
            )

    def identity(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        """Return e = Exp 0."""
        return self.exp(torch.zeros(self.dim, dtype=dtype, device=device))

    def relative(self, g: Tensor, h: Tensor) -> Tensor:
        """Return g⁻¹ · h, the element h as seen from g."""
        return self.product(self.inverse(g), h)

    def offset(self, g: Tensor, h: Tensor) -> Tensor:
        """Return Log g⁻¹h, which leads from g to h (the argument of eq. BSplineOnH); ∞ where no path does."""
        step = self.relative(g, h)
        if type(self).component is Group.component:
            return self.log(step)
        return torch.where(self.component(step).unsqueeze(-1) == 0, self.log(step), math.inf)

    def pull(self, h: Tensor, x: Tensor) -> Tensor:
        """Return h⁻¹ ⊙ x, where kernels transformed by h are read (eq. gcor)."""
        return self.act(self.inverse(h), x)

    def matrix(self, h: Tensor) -> Tensor:
        """Return the linear part of the action, `(*batch, space_dim, space_dim)`."""
        axes = torch.eye(self.space_dim, dtype=h.dtype, device=h.device)
        h = h.unsqueeze(-1 - len(self.element_shape))
        return (self.act(h, axes) - self.act(h, torch.zeros_like(axes))).transpose(-1, -2)

    def det(self, h: Tensor) -> Tensor:
        """Return det h, by how much h changes volume in R^d (cor. deth)."""
        return torch.linalg.det(self.matrix(h))

    def haar_density(self, a: Tensor) -> Tensor:
        """Return the left Haar density at Exp a in log-coordinates, |det (1 − e^{−ad a}) / ad a|.

        It is the Jacobian of b ↦ Log(Exp(a)⁻¹ Exp(a + b)) at b = 0, taken by autograd, so no group supplies it. That
        holds in any chart, since left multiplication by Exp(a)⁻¹ carries the point a to 0, where the density is 1.
        """
        with torch.inference_mode(False), torch.enable_grad():
            a = a.detach().clone()
            moved = a.clone().requires_grad_()
            step = self.offset(self.exp(a), self.exp(moved))  # (*batch, dim), zero in value
            rows = [torch.autograd.grad(step[..., i].sum(), moved, retain_graph=True)[0] for i in range(self.dim)]
        if not rows:
            return torch.ones(a.shape[:-1], dtype=a.dtype, device=a.device)
        return torch.linalg.det(torch.stack(rows, -2)).abs()

    @property
    def periods(self) -> tuple[float | None, ...]:
        """The period of each axis of the algebra, None where it has none."""
        return per_axis(type(self).__name__, "period", self.period, self.dim)

    # ---- plumbing ----

    def batch_shape(self, h: Tensor) -> torch.Size:
        """Return the leading shape of a batch of elements."""
        return h.shape[: h.ndim - len(self.element_shape)]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, letters in arguments.METHODS.items():
            if name in cls.__dict__:
                setattr(cls, name, arguments.checked(cls.__dict__[name], letters))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(vars(self), vars(other))

    def __hash__(self) -> int:
        return hash((type(self), self.dim, self.space_dim))

    def __repr__(self) -> str:
        # dim and element_shape follow from space_dim in every group that computes them.
        shown = {k: v for k, v in vars(self).items() if k not in ("dim", "element_shape")}
        listed = ", ".join(f"{k}={v!r}" for k, v in shown.items())
        return f"{type(self).__name__}({listed})"


def _same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    if left.keys() != right.keys():
        return False
    return all(
        torch.equal(v, right[k]) if isinstance(v, Tensor) and isinstance(right[k], Tensor) else v == right[k]
        for k, v in left.items()
    )
