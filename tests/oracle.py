"""The formulas of the layers as naive float64 loops, on SciPy and NumPy alone: the truth the layers are held to."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.interpolate import BSpline
from scipy.linalg import logm
from scipy.spatial.transform import Rotation

import liespline as ls


def spline(x: float, degree: int) -> float:
    """B^n(x)."""
    half = (degree + 1) / 2
    if not -half <= x < half:
        return 0.0
    return float(BSpline.basis_element(np.arange(degree + 2) - half, extrapolate=False)(x))


def matrix(group: ls.Group, h: np.ndarray) -> np.ndarray:
    """The matrix by which h acts on R^d, written down for each group."""
    match group:
        case ls.SO2():
            c, s = math.cos(h[0]), math.sin(h[0])
            return np.array([[c, -s], [s, c]])
        case ls.Scale():
            return h[0] * np.eye(group.space_dim)
        case ls.Trivial():
            return np.eye(group.space_dim)
    return h  # the matrix groups: SO(3) and the triangular one of tests/own_group.py


def log_relative(group: ls.Group, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Log g⁻¹h in the algebra's coordinates."""
    match group:
        case ls.SO2():
            return np.array([(h[0] - g[0] + math.pi) % (2 * math.pi) - math.pi])
        case ls.Scale():
            return np.log(h / g)
        case ls.SO3():
            return Rotation.from_matrix(g.T @ h).as_rotvec()
        case ls.Trivial():
            return np.zeros(0)
    a = np.real(logm(np.linalg.inv(g) @ h))
    return np.array([a[0, 0], a[1, 1], a[0, 1]])


def h_spline(basis: ls.SplineBasis, centre: np.ndarray, h: np.ndarray) -> float:
    """B(Log(h_j⁻¹h)/s), summed over turns on SO(2)."""
    a = log_relative(basis.grid.group, centre, h)
    if isinstance(basis.grid.group, ls.SO2):
        return sum(spline((a[0] + 2 * math.pi * k) / basis.width, basis.degree) for k in range(-4, 5))
    return math.prod(spline(v / basis.width, basis.degree) for v in a)


def x_spline(basis: ls.SplineBasis, centre: np.ndarray, x: np.ndarray) -> float:
    """B((x − x_i)/s)."""
    return math.prod(spline(v / basis.width, basis.degree) for v in x - centre)


def relative(group: ls.Group, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """g⁻¹h as an element."""
    match group:
        case ls.SO2():
            return h - g
        case ls.Scale():
            return h / g
        case ls.Trivial():
            return h
    return np.linalg.inv(g) @ h


def kernel(layer: ls.Lift | ls.GConv) -> np.ndarray:
    """K(h⁻¹y, h⁻¹h̃)/|det h|·w(h̃) entry by entry: (out, N_h, in, *W), or (out, N_out, in, N_in, *W)."""
    group = layer.out_grid.group
    weight = layer.weight.detach().double().numpy()
    largest = layer.window.largest
    lifting = isinstance(layer, ls.Lift)
    out = np.zeros((*weight.shape[:1], len(layer.out_grid), *weight.shape[1:2], len(layer.grid), *largest))
    x_centres = layer.x_basis.grid.elements.numpy()
    for a, h in enumerate(layer.out_grid.elements.numpy()):
        m = matrix(group, h)
        size = layer.window.sizes[a]
        scale = abs(np.linalg.det(m)) if math.prod(layer.kernel_size) > 1 else 1.0
        on_h = [[1.0]] * len(layer.grid)
        if not lifting:
            on_h = [
                [
                    h_spline(layer.h_basis, c, relative(group, h, b)) * float(w)
                    for c in layer.h_basis.grid.elements.numpy()
                ]
                for b, w in zip(layer.grid.elements.numpy(), layer.grid.weights, strict=True)
            ]
        for index in itertools.product(*map(range, largest)):
            y = np.array([i - (n - 1) / 2 for i, n in zip(index, largest, strict=True)])
            if any(abs(v) > (n - 1) / 2 for v, n in zip(y, size, strict=True)):
                continue
            at = np.linalg.inv(m) @ y
            on_x = np.array([x_spline(layer.x_basis, c, at) for c in x_centres])
            for b, values in enumerate(on_h):
                if lifting:
                    out[(slice(None), a, slice(None), b, *index)] = weight @ on_x / scale
                else:
                    out[(slice(None), a, slice(None), b, *index)] = (
                        np.einsum("ocij,i,j->oc", weight, on_x, np.array(values)) / scale
                    )
    return out[:, :, :, 0] if lifting else out


def correlate(layer: ls.Lift | ls.GConv, x: np.ndarray, sampled: np.ndarray) -> np.ndarray:
    """out(x, h) = Σ_y K(y − x) f(y), output sample by output sample, zero padding."""
    before, after = layer.padding
    grown = [(w - k) // 2 for w, k in zip(layer.window.largest, layer.kernel_size, strict=True)]
    lead = x.ndim - len(grown)
    widths = [(0, 0)] * lead + [(p + g, q + g) for p, q, g in zip(before, after, grown, strict=True)]
    x = np.pad(x, widths)
    window = sampled.shape[sampled.ndim - len(grown) :]
    counts = [(n - w) // s + 1 for n, w, s in zip(x.shape[lead:], window, layer.stride, strict=True)]
    out = np.zeros((len(x), sampled.shape[0], sampled.shape[1], *counts))
    for position in itertools.product(*map(range, counts)):
        corner = [p * s for p, s in zip(position, layer.stride, strict=True)]
        patch = x[(..., *(slice(c, c + w) for c, w in zip(corner, window, strict=True)))]
        axes = "cbxyz"[: patch.ndim - 1] if lead == 3 else "c" + "xyz"[: patch.ndim - 2]
        out[(slice(None), slice(None), slice(None), *position)] = np.einsum(f"n{axes},oa{axes}->noa", patch, sampled)
    if layer.bias is not None:
        out += layer.bias.detach().double().numpy().reshape(1, -1, *(1,) * (out.ndim - 2))
    return out
