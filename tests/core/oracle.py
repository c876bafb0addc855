"""The formulas of the layers as naive float64 loops, on SciPy and NumPy alone: the truth the layers are held to."""

import itertools
import math
from functools import cache

import numpy as np
from scipy.interpolate import BSpline
from scipy.spatial.transform import Rotation

import liespline as ls
from oracle_groups import closes, log, matrix, relative


def spline(x: np.ndarray, degree: int) -> np.ndarray:
    """B^n(x), number by number."""
    half = (degree + 1) / 2
    return np.where((x >= -half) & (x < half), _scipy_spline(degree)(x), 0.0)


@cache
def _scipy_spline(degree: int) -> BSpline:
    return BSpline.basis_element(np.arange(degree + 2) - (degree + 1) / 2, extrapolate=False)


def h_spline(basis: ls.SplineBasis, centre: np.ndarray, h: np.ndarray) -> float:
    """B(Log(h_j⁻¹h)/s), summed over turns along angles."""
    group, value = basis.grid.group, basis.height  # which has a test of its own
    for v, width, angle in zip(log(group, relative(group, centre, h)), basis.widths, closes(group), strict=True):
        turns = 2 * math.pi * np.arange(-4, 5) if angle else np.zeros(1)
        value *= float(spline((v + turns) / width, basis.degree).sum())
    return value


def x_spline(basis: ls.SplineBasis, centres: np.ndarray, x: np.ndarray) -> np.ndarray:
    """B((x − x_i)/s)."""
    return spline((x - centres) / np.array(basis.widths), basis.degree).prod(-1)


def kernel(layer: ls.Lift | ls.GConv) -> np.ndarray:
    """K(h⁻¹y, h⁻¹h̃)/|det h|·w(h̃) entry by entry: (out, N_h, in, *W), or (out, N_out, in, N_in, *W)."""
    if isinstance(layer.out_grid.group, ls.Sphere):
        return sphere_kernel(layer)
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
            on_x = x_spline(layer.x_basis, x_centres, at)
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


def disc_pad(x: np.ndarray, wide: list[tuple[int, int]]) -> np.ndarray:
    """Maps (…, *space) in the largest disc of their space, the mean of its rim around, sample by sample."""
    d = len(wide)
    lead, space = x.shape[: x.ndim - d], x.shape[x.ndim - d :]

    samples = list(itertools.product(*map(range, space)))
    radius = {i: math.dist(i, [(n - 1) / 2 for n in space]) for i in samples}
    largest = max(min(space) / 2, min(radius.values()) + 0.5)

    def share(index: tuple[int, ...]) -> float:
        return min(max(largest - radius.get(index, math.inf), 0.0), 1.0)

    rim = [i for i in samples if largest - radius[i] < 2.5]
    mean = sum(share(i) * x[(..., *i)] for i in rim) / sum(share(i) for i in rim)
    out = np.empty((*lead, *(n + p + q for n, (p, q) in zip(space, wide, strict=True))))
    for there in itertools.product(*map(range, out.shape[len(lead) :])):
        index = tuple(i - p for i, (p, _) in zip(there, wide, strict=True))
        inside = share(index)
        out[(..., *there)] = (inside * x[(..., *index)] if inside else 0) + (1 - inside) * mean
    return out


def section(n: np.ndarray) -> np.ndarray:
    """R_{0,β,γ}, the rotation that stands for a point of the sphere."""
    beta, gamma = math.atan2(math.hypot(n[0], n[1]), n[2]), math.atan2(n[1], n[0])
    return Rotation.from_euler("ZY", [gamma, beta]).as_matrix()


def ring(p: np.ndarray, angles: int) -> tuple[np.ndarray, float]:
    """The points that turns about z carry p to, at fixed azimuths, and the azimuth of p itself."""
    alpha = 2 * math.pi * np.arange(angles) / angles
    radius = math.hypot(p[0], p[1])
    points = np.stack([radius * np.cos(alpha), radius * np.sin(alpha), np.full(angles, p[2])], -1)
    return points, math.atan2(p[1], p[0])


def sphere_spline(basis: ls.SplineBasis, centre: np.ndarray, n: np.ndarray) -> float:
    """B(Log_S²(R_i⁻¹n)/s), Log_S² n(β, γ) = β(−sin γ, cos γ)."""
    q = section(centre).T @ n
    radius = math.hypot(q[0], q[1])
    beta = math.atan2(radius, q[2])
    gamma = 0.0 if radius < 1e-14 and q[2] < 0 else math.atan2(q[1], q[0])  # the antipode has no azimuth of its own
    a = beta * np.array([-math.sin(gamma), math.cos(gamma)])
    return basis.height * float(spline(a / basis.width, basis.degree).prod())


def sphere_kernel(layer: ls.Lift | ls.GConv) -> np.ndarray:
    """The kernel averaged over all turns about z, in the frequencies kept: a double sum over two rings of points.

    Averaging B_i(R_α x) B_j(R_α n) over α keeps the part of the product that depends on the difference of azimuths
    alone; the lower frequencies of it are what the Dirichlet kernel 1 + 2 Σ cos kθ picks out.
    """
    order, angles = layer.axial, max(32, 6 * layer.axial)
    lifting = isinstance(layer, ls.Lift)
    weight = layer.weight.detach().double().numpy()
    largest = layer.window.largest
    x_centres = layer.x_basis.grid.elements.numpy()
    out = np.zeros((*weight.shape[:1], len(layer.out_grid), *weight.shape[1:2], len(layer.grid), *largest))
    difference = 2 * math.pi * (np.arange(angles)[:, None] - np.arange(angles)) / angles
    for a, h in enumerate(layer.out_grid.elements.numpy()):
        back = section(h).T
        on_h = []
        for b, w in zip(layer.grid.elements.numpy(), layer.grid.weights, strict=True):
            if not lifting:
                points, azimuth = ring(back @ b, angles)
                centres = layer.h_basis.grid.elements.numpy()
                values = [[sphere_spline(layer.h_basis, c, p) * float(w) for c in centres] for p in points]
                on_h.append((np.array(values), azimuth))
        for index in itertools.product(*map(range, largest)):
            y = np.array([i - (n - 1) / 2 for i, n in zip(index, largest, strict=True)])
            if any(abs(v) > (n - 1) / 2 for v, n in zip(y, layer.window.sizes[a], strict=True)):
                continue
            points, azimuth = ring(back @ y, angles)
            on_x = x_spline(layer.x_basis, x_centres, points[:, None])  # (angles, N_x)
            if lifting:
                out[(slice(None), a, slice(None), 0, *index)] = weight @ on_x.mean(0)
            for b, (values, other) in enumerate(on_h):
                theta = difference - azimuth + other
                dirichlet = np.ones_like(theta) + 2 * sum(np.cos(k * theta) for k in range(1, order + 1))
                product = np.einsum("pq,pi,qj->ij", dirichlet, on_x, values) / angles**2
                out[(slice(None), a, slice(None), b, *index)] = np.einsum("ocij,ij->oc", weight, product)
    return out[:, :, :, 0] if lifting else out
