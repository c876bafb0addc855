"""The five methods that make a Lie group, and everything that follows from them (sections 3.1 and 3.3)."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar, cast

import torch
from torch import Tensor

# What each argument of the five methods is, so that one place can check them all, a user's group included.
_ARGUMENTS = {"product": "gh", "inverse": "h", "exp": "a", "log": "h", "act": "hx"}


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
    period: ClassVar[float | None] = None
    """v > 0 with Exp(v) = e for a one-dimensional closed group: splines on it are made periodic."""
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
        """Return Log h, the algebra vector of h nearest zero."""

    @abstractmethod
    def act(self, h: Tensor, x: Tensor) -> Tensor:
        """Return h ⊙ x, the point x moved by h."""

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
        """Return Log g⁻¹h, the algebra vector that leads from g to h (the argument of eq. BSplineOnH)."""
        return self.log(self.relative(g, h))

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

        It is the Jacobian of b ↦ Log(Exp(a)⁻¹ Exp(a + b)) at b = 0, taken by autograd, so no group supplies it.
        """
        with torch.inference_mode(False), torch.enable_grad():
            a = a.detach().clone()
            moved = a.clone().requires_grad_()
            step = self.offset(self.exp(a), self.exp(moved))  # (*batch, dim), zero in value
            rows = [torch.autograd.grad(step[..., i].sum(), moved, retain_graph=True)[0] for i in range(self.dim)]
        if not rows:
            return torch.ones(a.shape[:-1], dtype=a.dtype, device=a.device)
        return torch.linalg.det(torch.stack(rows, -2)).abs()

    # ---- plumbing ----

    def batch_shape(self, h: Tensor) -> torch.Size:
        """Return the leading shape of a batch of elements."""
        return h.shape[: h.ndim - len(self.element_shape)]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, arguments in _ARGUMENTS.items():
            if name in cls.__dict__:
                setattr(cls, name, _checked(cls.__dict__[name], arguments))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _same(vars(self), vars(other))

    def __hash__(self) -> int:
        return hash((type(self), self.dim, self.space_dim))

    def __repr__(self) -> str:
        # dim and element_shape follow from space_dim in every group that computes them.
        shown = {k: v for k, v in vars(self).items() if k not in ("dim", "element_shape")}
        arguments = ", ".join(f"{k}={v!r}" for k, v in shown.items())
        return f"{type(self).__name__}({arguments})"

    def _check(self, method: str, name: str, value: Tensor) -> None:
        kind, shape = {
            "a": ("algebra vectors", (self.dim,)),
            "x": ("points", (self.space_dim,)),
        }.get(name, ("elements", self.element_shape))
        where = f"{type(self).__name__}.{method}"
        if not isinstance(value, Tensor) or not value.is_floating_point():
            found = value.dtype if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"{where}: {name} must be a floating-point tensor, not {found}")
        if value.shape[max(value.ndim - len(shape), 0) :] != shape:
            raise ValueError(
                f"{where}: {name} has shape {tuple(value.shape)}; {kind} have shape (*batch, "
                + ", ".join(map(str, shape))
                + ")"
            )
        if kind == "elements" and readable(value):
            self.require(f"{where}: {name}", value.detach())


def readable(value: Tensor) -> bool:
    """Say whether values can be looked at: that would stall a GPU, and cannot be compiled, traced nor transformed."""
    plain = type(value) in (Tensor, torch.nn.Parameter) and torch._C._functorch.peek_interpreter_stack() is None
    traced = (
        torch.compiler.is_compiling() or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
    )
    return plain and value.device.type == "cpu" and not traced


def _checked(method: Callable[..., Tensor], arguments: str) -> Callable[..., Tensor]:
    @functools.wraps(method)
    def call(self: Group, *args: Tensor, **kwargs: Tensor) -> Tensor:
        for name, value in (*zip(arguments, args, strict=False), *kwargs.items()):
            self._check(method.__name__, name, value)
        return method(self, *args, **kwargs)

    # A code object of its own: torch.compile counts recompilations per code object, and this one would be shared.
    own = cast(FunctionType, call)
    own.__code__ = own.__code__.replace(co_name=method.__name__)
    return call


def _same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    if left.keys() != right.keys():
        return False
    return all(
        torch.equal(v, right[k]) if isinstance(v, Tensor) and isinstance(right[k], Tensor) else v == right[k]
        for k, v in left.items()
    )


def positive_dimension(where: str, d: int) -> int:
    """Return d, or say that a space needs at least one dimension."""
    if not isinstance(d, int) or isinstance(d, bool) or d < 1:
        raise ValueError(f"{where}: space_dim = {d!r}, must be a whole number ≥ 1")
    return d
