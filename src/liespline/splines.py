"""B-splines on R^d, on Lie groups and on the sphere (defs. cardinalRd, splineRd, splineH, eq. splineS2)."""

import itertools
import math
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from ._check import per_axis, whole
from .grids import Grid
from .grids.grid import on_cpu, origins, steps
from .groups import Group, Product

__all__ = ["SplineBasis", "bspline"]


def bspline(x: Tensor, degree: int) -> Tensor:
    """Return the cardinal B-spline Bⁿ(x), the n-fold convolution of the unit box with itself, elementwise.

    It is evaluated piece by piece on its support [−(n+1)/2, (n+1)/2] and is exactly 0 outside; autograd gives its
    derivative. The box itself (n = 0) holds its left end and not its right one, so that shifted boxes add up to 1.
    """
    whole("bspline", "degree", degree, least=0)
    if not isinstance(x, Tensor) or not x.is_floating_point():
        found = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise ValueError(f"bspline: x must be a floating-point tensor, not {found}")
    if degree == 0:
        return ((x >= -0.5) & (x < 0.5)).to(x.dtype)
    distance = x.abs().clamp(max=(degree + 1) / 2)  # far away the polynomials below would overflow, and their gradients
    value = torch.zeros_like(x)
    for low, centre, coefficients in _PIECES.get(degree) or _pieces(degree):
        v = distance - centre  # in [−½, ½] on this piece, which keeps the polynomial well conditioned
        piece = torch.full_like(x, coefficients[-1])
        for c in reversed(coefficients[:-1]):
            piece = piece * v + c
        value = torch.where((distance >= low) & (distance < centre + 0.5), piece, value)
    return value


def _pieces(n: int) -> list[tuple[float, float, list[float]]]:
    """Return for each polynomial piece of Bⁿ(|x|) where it starts, its centre, and its coefficients about that."""
    pieces = []
    for q in range((n + 2) // 2):
        twice_centre = 2 * q + n % 2
        coefficients = []
        for m in range(n + 1):
            # Bⁿ(x) = Σ_k (−1)^k C(n+1, k) (x − t_k)₊ⁿ / n!, in whole numbers until the very last division
            total = 0
            for k in range(n + 2):
                twice_distance = twice_centre - (2 * k - n - 1)
                if twice_distance > 0:
                    total += (-1) ** k * math.comb(n + 1, k) * math.comb(n, m) * twice_distance ** (n - m)
            coefficients.append(total / (math.factorial(n) * 2 ** (n - m)))
        pieces.append((max(twice_centre - 1, 0) / 2, twice_centre / 2, coefficients))
    return pieces


_PIECES = {degree: _pieces(degree) for degree in range(10)}  # ready-made, so that torch.compile sees constants


@dataclass(frozen=True)
class SplineBasis:
    """The functions B(Log(h_i⁻¹h) / scale) centred on the elements of a grid (eq. BSplineOnH), as a value.

    Dense, local, atrous and deformable kernels are choices of the arguments: centres all over the group, a few near
    the identity, centres further apart than `scale`, or `trainable` centres. Along periodic axes such as angles the
    splines are periodic, so on uniform grids they add up to 1; on curved groups their sum has mean 1. A spline lives
    on its centre's component of the group and is 0 on the others.
    """

    grid: Grid
    scale: float | tuple[float, ...] | None = None
    """Width of one spline, or one per axis of the algebra; the grid's spacing unless given."""
    degree: int = 3
    trainable: bool = False
    """Whether the layer that uses this basis learns where the centres are."""
    height: float = field(default=1.0, init=False, repr=False, compare=False)
    """What splines are multiplied by, so that their sum has mean 1 on a curved group that the grid covers."""
    _images: tuple[tuple[float, ...], ...] = field(default=((),), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("SplineBasis", "degree", self.degree, least=0)
        if not isinstance(self.grid, Grid):
            found = type(self.grid).__name__
            raise ValueError(f"SplineBasis: grid is a {found}, must be a Grid such as uniform(SO2(), 8)")
        scale = self.grid.spacing if self.scale is None else self.scale
        object.__setattr__(self, "scale", steps("SplineBasis", scale, self.grid.group.dim, name="scale"))
        object.__setattr__(self, "_images", _images(self.grid.group, self.widths, self.degree))
        object.__setattr__(self, "height", _height(self))

    def __len__(self) -> int:
        return len(self.grid)

    @property
    def widths(self) -> tuple[float, ...]:
        """The scale of each axis of the algebra."""
        assert self.scale is not None  # set in __post_init__
        return per_axis("SplineBasis", "scale", self.scale, self.grid.group.dim)

    @property
    def width(self) -> float:
        """The scale as one number, that of the widest axis."""
        return max(self.widths, default=1.0)

    @property
    def reach(self) -> float:
        """Distance in the algebra from a centre to where its spline ends, along its widest axis."""
        return (self.degree + 1) / 2 * self.width

    @property
    def integral(self) -> float:
        """∫ B_i(h) dh over the group, the same for every spline."""
        return self.height * _integral(self.grid.group, self.widths, self.degree)

    def __call__(self, h: Tensor, centres: Tensor | None = None) -> Tensor:
        """Return the value of each of the N basis functions at h, `(*batch, N)`; `centres` replace the grid's."""
        group = self.grid.group
        if group.batch_shape(h) + group.element_shape != h.shape:
            shape = ", ".join(map(str, group.element_shape))
            raise ValueError(f"SplineBasis: h has shape {tuple(h.shape)}; elements of {group!r} are (*batch, {shape})")
        if centres is None:
            centres = self.grid.elements.to(h)
        offset = group.offset(centres, h.unsqueeze(-1 - len(group.element_shape)))  # (*batch, N, dim)
        offset = offset / offset.new_tensor(self.widths)
        if len(self._images) == 1:
            values = bspline(offset, self.degree).prod(-1)
        else:
            values = bspline(offset.unsqueeze(-1) + offset.new_tensor(self._images).T, self.degree).sum(-1).prod(-1)
        return values if self.height == 1 else self.height * values

    def centres(self, log: Tensor) -> Tensor:
        """Return the centres Exp(log) for log-coordinates `(N, dim)`, the form in which centres are learned.

        They stay on the component that they start on.
        """
        group = self.grid.group
        if type(group).component is Group.component:
            return group.exp(log)
        return group.product(group.exp(log), origins(group, self.grid.elements).to(log))

    def fit(self, h: Tensor, values: Tensor) -> Tensor:
        """Return the coefficients c minimising Σ_p |Σ_i c_i B_i(h_p) − values_p|², shape `(N, *values.shape[1:])`.

        `h` is `(P, *element_shape)` and `values` `(P, *rest)`. Solved by conjugate gradients on the sparse system, so
        thousands of centres are fine; of several solutions it returns the smallest.
        """
        shape = self.grid.group.element_shape
        if h.shape[1:] != shape or len(h) != len(values) or len(h) == 0:
            raise ValueError(
                f"SplineBasis.fit: h {tuple(h.shape)} and values {tuple(values.shape)} must be (P, "
                + ", ".join(map(str, shape))
                + ") and (P, ...) with the same P ≥ 1"
            )
        chunk = max(1, 200_000 // len(self))
        blocks = [self(part).to_sparse() for part in h.split(chunk)]
        matrix = torch.cat(blocks).coalesce()  # (P, N)
        solution = _least_squares(matrix, values.reshape(len(values), -1).to(h))
        return solution.reshape(len(self), *values.shape[1:])


def _images(group: Group, widths: tuple[float, ...], degree: int) -> tuple[tuple[float, ...], ...]:
    """Return where splines repeat along each axis, in units of its width: one row per image, the same for all axes.

    On an axis that is not periodic all images but the first lie at ∞, where splines are 0.
    """
    axes = list(zip(group.periods, widths, strict=True))
    ends = [(degree + 1) / 2 * width / period for period, width in axes if period is not None]
    turns = max([0, *(math.ceil(end - 0.5) for end in ends)])
    return tuple(
        tuple(0.0 if k == 0 else math.inf if period is None else k * period / width for period, width in axes)
        for k in range(-turns, turns + 1)
    )


@on_cpu
def _height(basis: SplineBasis) -> float:
    grid, group = basis.grid, basis.grid.group
    flat = None not in group.periods  # tori and the trivial group: splines on uniform grids add up to 1 by themselves
    if flat or group.volume is None or basis.scale != grid.spacing:
        return 1.0
    if abs(float(grid.weights.sum()) / group.volume - 1) > 1e-3:  # a few centres, which are not meant to cover it
        return 1.0
    return group.volume / (len(grid) * _integral(group, basis.widths, basis.degree))


@lru_cache(maxsize=256)
@on_cpu
def _integral(group: Group, widths: tuple[float, ...], degree: int) -> float:
    """Return ∫ B(Log h / s) dh, by the midpoint rule over the part of the algebra on which Log undoes Exp."""
    if isinstance(group, Product):
        ends = list(itertools.accumulate((factor.dim for factor in group.factors), initial=0))
        own = (widths[i:j] for i, j in itertools.pairwise(ends))
        return math.prod(_integral(factor, w, degree) for factor, w in zip(group.factors, own, strict=True))
    if group.dim == 0 or (group.dim == 1 and not group.chart):  # where h = Exp a, dh = da
        return math.prod(widths)
    cells = max(4, round(32_768 ** (1 / group.dim)))
    half = (degree + 1) / 2 * torch.tensor(widths, dtype=torch.float64)
    axis = (2 * torch.arange(cells, dtype=torch.float64) + 1) / cells - 1
    a = half * torch.cartesian_prod(*[axis] * group.dim).reshape(-1, group.dim)
    a = a[(group.log(group.exp(a)) - a).abs().amax(-1) < 1e-6]
    values = bspline(a / torch.tensor(widths, dtype=torch.float64), degree).prod(-1) * group.haar_density(a)
    return float(values.sum() * (2 * half / cells).prod())


def _least_squares(matrix: Tensor, values: Tensor) -> Tensor:
    """Return the least-squares solution of a sparse system for every column of values, by CGLS from zero."""
    solution = torch.zeros(matrix.shape[1], values.shape[1], dtype=values.dtype, device=values.device)
    adjoint = matrix.t().coalesce()
    residual = values
    gradient = direction = adjoint @ residual
    energy = start = gradient.square().sum(0)
    enough = (16 * torch.finfo(values.dtype).eps) ** 2 if values.dtype == torch.float32 else 1e-24
    for _ in range(500):
        image = matrix @ direction
        step = energy / image.square().sum(0).clamp_min(torch.finfo(values.dtype).tiny)
        solution = solution + step * direction
        residual = residual - step * image
        gradient = adjoint @ residual
        previous, energy = energy, gradient.square().sum(0)
        if bool((energy <= enough * start).all()):
            break
        direction = gradient + energy / previous.clamp_min(torch.finfo(values.dtype).tiny) * direction
    return solution
