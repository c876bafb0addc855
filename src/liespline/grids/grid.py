"""A finite set of group elements with what it takes to integrate over the group."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from .._check import per_axis
from .._torch import real
from ..groups import Group

P = ParamSpec("P")
R = TypeVar("R")


def on_cpu(make: Callable[P, R]) -> Callable[P, R]:
    """Make constants as ordinary CPU tensors, whatever default device or fake mode the caller has set."""

    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with real():
            return make(*args, **kwargs)

    return call


@dataclass(frozen=True, eq=False)
class Grid:
    """Elements h_i of a group with Haar quadrature weights w_i: ∫ f dh ≈ Σ w_i f(h_i).

    Values are float64 on the CPU, whatever the layers that use them compute in. Two grids with equal contents are
    equal and hash alike, so what is derived from a grid can be computed once and shared.
    """

    group: Group
    elements: Tensor
    """`(N, *element_shape)`"""
    weights: Tensor
    """`(N,)`"""
    spacing: float | tuple[float, ...]
    """Distance between neighbours, ‖Log h_i⁻¹h_j‖: the natural scale of splines on the grid; or one per axis."""

    @on_cpu
    def __post_init__(self) -> None:
        group, shape = self.group, self.group.element_shape
        elements = torch.as_tensor(self.elements).detach().to("cpu", torch.float64)
        if elements.ndim != 1 + len(shape) or elements.shape[1:] != shape or len(elements) == 0:
            raise ValueError(
                f"Grid: elements has shape {tuple(elements.shape)}; {group!r} needs (N, "
                + ", ".join(map(str, shape))
                + ") with N ≥ 1"
            )
        weights = torch.as_tensor(self.weights).detach().to("cpu", torch.float64)
        if weights.shape != elements.shape[:1] or not weights.isfinite().all():
            raise ValueError(f"Grid: weights has shape {tuple(weights.shape)}; needs {len(elements)} finite numbers")
        spacing = steps("Grid", self.spacing, group.dim)
        group.require("Grid: elements", elements)
        # Exp ∘ Log is the identity on every component, so it tells members from non-members without asking more of a
        # group than its methods; multiplying by e first brings angles into their own range.
        elements = group.product(group.identity(dtype=torch.float64), elements)
        back = group.product(group.exp(group.log(elements)), origins(group, elements))
        gap = (back - elements).flatten(1).abs().amax(1) if shape != (0,) else None
        if gap is not None and not (gap < 1e-6).all():
            index = int((~(gap < 1e-6)).nonzero()[0])
            raise ValueError(
                f"Grid: elements[{index}] = {elements[index].tolist()} is not an element of {group!r}: Exp(Log h) ≠ h"
            )
        object.__setattr__(self, "elements", elements.clone())
        object.__setattr__(self, "weights", weights.clone())
        object.__setattr__(self, "spacing", spacing)

    def __len__(self) -> int:
        return len(self.elements)

    @property
    def steps(self) -> tuple[float, ...]:
        """The spacing of each axis of the algebra."""
        return per_axis("Grid", "spacing", self.spacing, self.group.dim)

    @cached_property
    @on_cpu
    def _fingerprint(self) -> str:
        content = hashlib.sha256(self.elements.numpy().tobytes())
        content.update(self.weights.numpy().tobytes())
        return content.hexdigest() + repr(self.spacing)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Grid)
            and self.group == other.group
            and len(self) == len(other)
            and self._fingerprint == other._fingerprint
        )

    def __hash__(self) -> int:
        return hash((self.group, self._fingerprint))

    def __repr__(self) -> str:
        spacing = self.spacing if isinstance(self.spacing, tuple) else (self.spacing,)
        shown = ", ".join(f"{step:.4g}" for step in spacing)
        shown = f"({shown})" if len(spacing) > 1 else shown
        return f"Grid({self.group!r}, {len(self)} elements, spacing={shown})"


def steps(
    where: str, spacing: float | Sequence[float], dim: int, *, name: str = "spacing"
) -> float | tuple[float, ...]:
    """Return a positive spacing, or one per axis; equal ones are one number."""
    given = per_axis(where, name, tuple(spacing) if isinstance(spacing, Sequence) else spacing, max(dim, 1))
    if not all(0 < s < float("inf") for s in given):
        raise ValueError(f"{where}: {name} = {spacing}, must be a positive number, or one per axis")
    return float(given[0]) if len(set(given)) == 1 else tuple(map(float, given))


def origins(group: Group, elements: Tensor) -> Tensor:
    """Return what stands for the component of each element: h = Exp(Log h) · r."""
    return group.representatives(dtype=elements.dtype, device=elements.device)[group.component(elements)]


def on_every_component(near: Grid) -> Grid:
    """Return elements on the component of e, and the same next to what stands for every other component."""
    group = near.group
    rest = group.representatives(dtype=near.elements.dtype)
    if len(rest) == 1:
        return near
    elements = group.product(near.elements, rest.unsqueeze(1)).flatten(0, 1)
    return Grid(group, elements, near.weights.repeat(len(rest)), near.spacing)


def same(grid: Grid, elements: Tensor) -> Tensor:
    """Return which element of the grid each of `(M, *element_shape)` is, to a millionth of a step: `(M, N)` bools."""
    distance = grid.group.offset(elements.unsqueeze(1), grid.elements).norm(dim=-1)
    return distance < 1e-6 * min(grid.steps, default=1.0)
