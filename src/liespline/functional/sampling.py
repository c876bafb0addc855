"""Where kernels are read and what the spline basis is there (section 3.3, eq. BSplinesOnG)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from .._check import Size
from ..grids import Grid
from ..grids.grid import on_cpu
from ..grids.regular import box
from ..splines import SplineBasis
from .ends import renormalised, replicated

_MOST = 32  # frequencies about the axis of kernels on the sphere


@dataclass(frozen=True)
class Window:
    """The samples of R^d that a kernel covers: `kernel_size` at the identity, and its own `sizes` for every element."""

    kernel_size: Size
    sizes: tuple[Size, ...]

    @property
    def largest(self) -> Size:
        """The window that holds all of them."""
        if not self.kernel_size:
            return ()
        return tuple(max(axis) for axis in zip(*self.sizes, strict=True))

    def borders(self, padding: tuple[Size, Size]) -> tuple[Size, Size]:
        """Return the padding before and after each axis that puts the largest window where `kernel_size` would be."""
        grown = [(w - k) // 2 for w, k in zip(self.largest, self.kernel_size, strict=True)]
        before, after = (tuple(p + g for p, g in zip(side, grown, strict=True)) for side in padding)
        return before, after


@on_cpu
def window(grid: Grid, kernel_size: Size) -> Window:
    """Return the window of every element: the ellipsoid about the window of e, moved by h, and its bounding box.

    Rotations leave a square window as it is; scalings grow it. Windows of one sample stay points for every h.
    """
    if max(kernel_size, default=1) == 1:
        return Window(kernel_size, (kernel_size,) * len(grid))
    matrices = grid.group.matrix(grid.elements)  # (A, d, d)
    ends = torch.tensor([(k + 1) / 2 for k in kernel_size], dtype=matrices.dtype)  # the first sample left out at e
    reach = (matrices * ends).square().sum(-1).sqrt() - 1e-6
    odd = torch.tensor([k % 2 for k in kernel_size])
    half = torch.where(odd == 1, torch.ceil(reach - 1).clamp_min(0), torch.ceil(reach - 0.5).clamp_min(1))
    return Window(kernel_size, tuple(tuple(row) for row in (2 * half.int() + odd).tolist()))


@on_cpu
def space_points(grid: Grid, window: Window) -> tuple[Tensor, Tensor]:
    """Return the points h⁻¹ ⊙ y where the kernel of each element is read, `(A, Y, d)`, and its factor there, `(A, Y)`.

    y runs over the largest window; the factor is 1/|det h| inside the element's own window and 0 outside. A window of
    one sample is a Dirac δ, which has no such factor: δ(h⁻¹y)/|det h| = δ(y).
    """
    group, d = grid.group, grid.group.space_dim
    if not window.kernel_size:  # no space: the kernel is read at the origin alone
        return torch.zeros(len(grid), 1, d, dtype=torch.float64), torch.ones(len(grid), 1, dtype=torch.float64)
    y = box(window.largest)  # (Y, d)
    h = grid.elements.unsqueeze(1)
    edge = torch.tensor(window.sizes, dtype=torch.float64).unsqueeze(1) / 2  # (A, 1, d)
    inside = (y.abs() < edge).all(-1)
    scale = group.det(grid.elements).abs() if math.prod(window.kernel_size) > 1 else torch.ones(len(grid)).double()
    return group.pull(h, y), inside / scale.unsqueeze(-1)


@on_cpu
def group_points(grid: Grid, out_grid: Grid) -> tuple[Tensor, Tensor]:
    """Return the elements h⁻¹ h̃ for output h and input h̃, `(A, N, *element_shape)`, and their Haar weights `(1, N)`."""
    h, points = out_grid.elements.unsqueeze(1), grid.elements
    # Between different groups it is a function on the quotient S² lifted to SO(3), which acts on its points.
    move = grid.group.relative if grid.group == out_grid.group else out_grid.group.pull
    return move(h, points), grid.weights.unsqueeze(0)


def sample(
    basis: SplineBasis, points: Tensor, factor: Tensor, *, centres: Tensor | None = None, axial: int | None = None
) -> Tensor:
    """Return the basis at the points times their factor, `(A, M, P, N)`, for points `(A, P, *shape)`.

    For a group M is 1. On R³ ⋊ S² `axial` = K makes kernels symmetric about the reference axis: the product of two such
    samples, summed over M = 1 + 2K, is the average of B_i(R_α x) B_j(R_α n) over all turns α about it (theorem,
    item 3), up to the frequency K about the axis. The symmetry is exact for every K; see `harmonics`.
    """
    if axial is None:
        return (basis(points, centres) * factor.unsqueeze(-1)).unsqueeze(1)
    # Fourier coefficients about the axis depend on the radius and height alone, and turning a point by φ multiplies
    # the k-th one by e^{ikφ}: kept as they are, the symmetry is exact, not only as good as a quadrature.
    alpha, values = _around(basis, points, centres, angles(axial))
    phi = torch.atan2(points[..., 1], points[..., 0]).unsqueeze(-1)
    terms = [values.mean(-2)]
    for k in range(1, axial + 1):
        for shift in (0.0, math.pi / 2):
            wave = math.sqrt(2) * torch.cos(k * (alpha - phi) + shift)
            terms.append((values * wave.unsqueeze(-1)).mean(-2))
    return torch.stack(terms, 1) * factor.unsqueeze(1).unsqueeze(-1)


def _around(basis: SplineBasis, points: Tensor, centres: Tensor | None, n: int) -> tuple[Tensor, Tensor]:
    """Return n azimuths, and the basis `(*batch, n, N)` at the points turned there about the axis."""
    alpha = torch.arange(n).to(points) * (2 * math.pi / n)
    radius = torch.hypot(points[..., 0], points[..., 1]).unsqueeze(-1)
    height = points[..., 2:].expand(*points.shape[:-1], n)
    return alpha, basis(torch.stack((radius * alpha.cos(), radius * alpha.sin(), height), -1), centres)


def angles(harmonics: int) -> int:
    """Return how many azimuths determine that many frequencies, with room for what lies above them."""
    return max(32, 6 * harmonics)


@lru_cache(maxsize=256)
@on_cpu
def harmonics(
    x_basis: SplineBasis, h_basis: SplineBasis | None, grid: Grid, out_grid: Grid, window: Window
) -> int | None:
    """Return the number of frequencies about the axis that a kernel on R³ ⋊ S² needs; None where there is no axis.

    The energy of the axial average at frequency k is that of both bases there, multiplied. So many are kept that what
    is left out is below 1e-3 of the kernel, in the mean square; lifting needs none but the average itself.
    """
    if out_grid.group.quotient_of is None:
        return None
    if h_basis is None or not window.kernel_size:
        return 0
    power = torch.ones(_MOST + 1, dtype=torch.float64)
    for basis, (points, factor) in (
        (x_basis, space_points(out_grid, window)),
        (h_basis, group_points(grid, out_grid)),
    ):
        seen = points[factor.expand(points.shape[:2]) != 0]
        seen = seen[:: max(1, len(seen) // 128)]  # a few tell the spectrum
        _, values = _around(basis, seen, None, 4 * _MOST)
        spectrum = torch.fft.rfft(values, dim=-2)[:, : _MOST + 1]
        power = power * spectrum.abs().square().sum((0, 2))
    power[1:] *= 2
    left = power.flip(0).cumsum(0).flip(0)[1:] / power.sum()  # what lies above 0, 1, 2, …
    return int((left > 1e-6).sum())


@lru_cache(maxsize=256)
@on_cpu
def space_samples(basis: SplineBasis, grid: Grid, window: Window, axial: int | None = None) -> Tensor:
    """Return the spatial basis in the window of every element, `(A, M, *W, N_x)` in float64; computed once."""
    points, factor = space_points(grid, window)
    return in_window(sample(basis, points, factor, axial=axial), window)


def in_window(samples: Tensor, window: Window) -> Tensor:
    """Return samples `(A, M, Y, N)` with the axes of the largest window in place of Y."""
    return samples.reshape(*samples.shape[:2], *window.largest, samples.shape[-1])


@lru_cache(maxsize=256)
@on_cpu
def group_samples(
    basis: SplineBasis, grid: Grid, out_grid: Grid, axial: int | None = None, boundary: str = "zero"
) -> Tensor:
    """Return the basis on H at h⁻¹h̃ times the Haar weight, `(A, M, N, N_k)` in float64; computed once.

    Where the grid ends, splines are cut off, `renormalised` or `replicated`.
    """
    points, factor = group_points(grid, out_grid)
    samples = sample(basis, points, factor, axial=axial)
    if boundary == "replicate":
        return replicated(samples, basis, grid, out_grid)
    return samples if boundary == "zero" else renormalised(samples, basis, points, basis.integral)
