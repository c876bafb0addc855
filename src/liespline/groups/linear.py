"""Small matrices in batches: products with vectors, and the logarithm of a matrix."""

import math

import numpy as np
import torch
from torch import Tensor

from .._torch import readable

_ROOTS, _ITERATIONS, _NODES = 8, 40, 12
_RADIUS = 0.4  # ‖A − I‖ within which the quadrature below is exact to rounding
_NODE, _WEIGHT = ((v + 1) / 2 if i == 0 else v / 2 for i, v in enumerate(np.polynomial.legendre.leggauss(_NODES)))
# asinh(r)/r as a series in r²; with r imaginary it is arcsin(r)/r
_SERIES = [(-1) ** n * math.comb(2 * n, n) / (4**n * (2 * n + 1)) for n in range(9)]


def apply(matrix: Tensor, x: Tensor) -> Tensor:
    """Return the matrix-vector product, column by column: many small products that broadcast are slow as a batch."""
    return sum((matrix[..., i] * x[..., i : i + 1] for i in range(1, x.shape[-1])), matrix[..., 0] * x[..., :1])


def logarithm(matrix: Tensor) -> Tensor:
    """Return the principal logarithm of real matrices `(*batch, d, d)`, differentiable; NaN where there is none.

    There is one where no eigenvalue is zero or negative. d = 2 has a closed form; larger matrices take square roots
    until they are near I and then the Padé approximant of log (inverse scaling and squaring).
    """
    d = matrix.shape[-1]
    log = matrix.log() if d == 1 else _closed_form(matrix) if d == 2 else _by_roots(matrix)
    with torch.no_grad():
        # Wherever something went wrong, Exp does not lead back.
        gap = (torch.linalg.matrix_exp(log) - matrix).abs().amax((-1, -2), keepdim=True)
        size = matrix.abs().amax((-1, -2), keepdim=True) * (1 + log.abs().amax((-1, -2), keepdim=True))
        found = gap <= math.sqrt(torch.finfo(matrix.dtype).eps) * size
    return torch.where(found, log, math.nan)


def _closed_form(matrix: Tensor) -> Tensor:
    """Return log A = ½ log det A · I + f (B − ½ tr B · I), B = A/√det A, with f = asinh(r)/r or θ/sin θ.

    r² = −sin² θ = (½ tr B)² − 1 is what the two eigenvalues of B are apart, squared, so they may be equal, real or a
    complex pair; f is smooth in it.
    """
    (a, b), (c, d) = (row.unbind(-1) for row in matrix.unbind(-2))
    root = (a * d - b * c).sqrt()  # NaN for a negative determinant
    half, trace = (a - d) / (2 * root), (a + d) / (2 * root)
    square = half * half + b * c / (root * root)
    ratio = _ratio(square, trace)
    # −I has no direction of its own; the usual turn by π is as good as any other
    opposite = (trace < 0) & (square.abs() < 256 * torch.finfo(matrix.dtype).eps)
    ratio = torch.where(opposite, 0.0, ratio)
    turn = torch.where(opposite, math.pi, torch.zeros_like(trace))
    upper, lower = ratio * b / root - turn, ratio * c / root + turn
    middle, side = root.log(), ratio * half
    return torch.stack((middle + side, upper, lower, middle - side), -1).unflatten(-1, (2, 2))


def _ratio(square: Tensor, trace: Tensor) -> Tensor:
    near = (square.abs() < 1e-2) & (trace > 0)
    series = torch.full_like(square, _SERIES[-1])
    for c in reversed(_SERIES[:-1]):
        series = series * square + c
    apart = torch.where(near, 1.0, square.abs()).sqrt()
    real = torch.where(trace > 0, apart.asinh() / apart, math.nan)  # two negative eigenvalues have no logarithm
    return torch.where(near, series, torch.where(square > 0, real, torch.atan2(apart, trace) / apart))


def stretch_ratio(square: Tensor) -> Tensor:
    """Return asinh(r)/r as a smooth function of r² ≥ 0."""
    return _ratio(square, torch.ones_like(square))


def _by_roots(matrix: Tensor) -> Tensor:
    eye = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    doublings = torch.ones_like(matrix[..., :1, :1])
    for _ in range(_ROOTS):  # each matrix is rooted until it is near I and not once more, which would cost digits
        far = ((matrix - eye).square().sum((-1, -2), keepdim=True) > _RADIUS**2).detach()
        if _none(far):
            break
        matrix = torch.where(far, _root(torch.where(far, matrix, eye), eye), matrix)
        doublings = torch.where(far, 2 * doublings, doublings)
    x = matrix - eye
    # log(I + X) = ∫₀¹ X (I + tX)⁻¹ dt by Gauss-Legendre, which is the Padé approximant of degree _NODES
    total = torch.zeros_like(x)
    for node, weight in zip(_NODE, _WEIGHT, strict=True):
        total = total + float(weight) * torch.linalg.solve(eye + float(node) * x, x)
    return doublings * total


def _root(matrix: Tensor, eye: Tensor) -> Tensor:
    """Return the principal square root by Denman and Beavers' iteration, with scaling."""
    root, back = matrix, eye.expand_as(matrix)  # to A^½ and A^−½
    for _ in range(_ITERATIONS):  # a few are enough, except for turns by almost π
        product = root @ back
        far = ((product - eye).square().sum((-1, -2), keepdim=True) > 1e-4).detach()
        # While far from I, scaling brings the determinant of the product to 1; then convergence is quadratic.
        size = torch.linalg.det(product).abs().clamp_min(1e-30).pow(-0.5 / len(eye)).unsqueeze(-1).unsqueeze(-1)
        root, back = _newton(torch.where(far, size, 1.0), root, back)
        if _none(far):
            break
    # From 1e-2 on, two more steps are exact to rounding, in value and in derivative.
    for _ in range(2):
        root, back = _newton(torch.ones_like(root[..., :1, :1]), root, back)
    return root


def _newton(size: Tensor, root: Tensor, back: Tensor) -> tuple[Tensor, Tensor]:
    root, back = size * root, size * back
    return 0.5 * (root + torch.linalg.inv_ex(back).inverse), 0.5 * (back + torch.linalg.inv_ex(root).inverse)


def _none(mask: Tensor) -> bool:
    """Say that nothing is left to do, where one may look."""
    return readable(mask) and not mask.any()
