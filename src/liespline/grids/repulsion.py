"""Approximately uniform grids of any size on compact curved groups (section 3.3, "repulsion model")."""

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._check import whole
from ..groups import O3, SO3, Group, Sphere
from ..groups.even import constant
from .grid import Grid, on_cpu, on_every_component
from .scatter import scatter

Array = npt.NDArray[np.float64]

_STAGES, _STEPS, _NEIGHBOURS, _SOLVER_STEPS = 12, 25, 24, 300


@on_cpu
def repulsion(group: Group, n: int, *, seed: int = 0) -> Grid:
    """Return n elements of a compact group that push each other apart: the smallest ‖Log h_i⁻¹h_j‖ is maximised.

    On S² and SO(3) they start from a spiral shaken by `seed`, and the same seed gives the same grid on any machine;
    weights integrate constants exactly, and harmonics of degree 1 and 2 as well if n suffices (9 on S², about 36 on
    SO(3)) and that leaves them positive. Other groups start from random elements; weights are equal. Every component
    holds the same elements, so n is a multiple of their number. Where a uniform grid of n elements lies further apart,
    such as the 60 rotations of the icosahedron (1.257 rad, found here 1.169), it is returned instead.
    """
    whole("repulsion", "n", n)
    if group.volume is None:
        raise ValueError(f"repulsion: group = {group!r} has no finite volume; use uniform or local")
    components = len(group.representatives())
    if n % components:
        raise ValueError(f"repulsion: n = {n}, must be a multiple of {components}, one for each component of {group!r}")
    if isinstance(group, SO3 | Sphere | O3):
        sphere = Sphere() if isinstance(group, Sphere) else SO3()
        elements, weights, spacing = _on_sphere(sphere, n // components, seed)
    else:
        elements, spacing = scatter(group, n // components, seed)
        weights = constant(len(elements), group.volume / n)
    grid = on_every_component(Grid(group, elements, weights, spacing))
    exact = _exact(group, n)
    return grid if exact is None or closest(exact) < closest(grid) else exact


def _exact(group: Group, n: int) -> Grid | None:
    """Return the uniform grid of n elements, if the group has one."""
    try:
        return Grid(group, *group.uniform_elements(n, None))
    except (TypeError, ValueError):
        return None


def closest(grid: Grid) -> float:
    """Return the smallest distance ‖Log h_i⁻¹h_j‖ between two elements."""
    distance = grid.group.offset(grid.elements.unsqueeze(1), grid.elements).norm(dim=-1)
    return float(distance.fill_diagonal_(math.inf).min())


def _on_sphere(group: Group, n: int, seed: int) -> tuple[Tensor, Tensor, float]:
    # Both spaces are spheres: S² in R³, and SO(3) as unit quaternions ±q in R⁴, where chords order as angles do.
    antipodal = isinstance(group, SO3)
    volume = 8 * math.pi**2 if antipodal else 4 * math.pi
    typical = math.pow(math.pi**2 / n, 1 / 3) if antipodal else math.sqrt(volume / n)
    start = _quaternion_spiral(n) if antipodal else _spiral(n)
    start = start + 0.3 * typical * np.random.default_rng(seed).uniform(-1, 1, start.shape)
    # sin, cos and pow may differ in the last bit between machines; what follows uses exactly rounded operations
    # in a fixed order only, so from a rounded start every machine walks the same way.
    points = _spread(np.round(start * 2**20) / 2**20, antipodal, round(typical, 9))
    elements = torch.from_numpy(points.T.copy())
    elements = _rotations(elements) if antipodal else elements
    weights = volume * _quadrature(elements.flatten(1).T.numpy())
    return elements, torch.from_numpy(weights), _spacing(group, elements, points)


def _spacing(group: Group, elements: Tensor, points: Array) -> float:
    """Return the mean distance ‖Log h_i⁻¹h_j‖ from an element to its nearest neighbour, 1 where there is none."""
    if len(elements) == 1:
        return 1.0
    (nearest,) = _nearest(points, isinstance(group, SO3), 1)
    return round(float(group.offset(elements, elements[torch.from_numpy(nearest)]).norm(dim=-1).mean()), 9)


def _spread(points: Array, antipodal: bool, typical: float) -> Array:
    """Return points `(axes, n)` moved apart on their sphere."""
    k = min(_NEIGHBOURS, points.shape[1] - 1)
    points = _unit(points)
    total = _STAGES * _STEPS if k else 0
    # Few points find the arrangement with the widest closest pair; many would freeze into patches with gaps between
    # them on the way there, so for those the force stays long-ranged, which keeps the density even.
    steepest = 7 if points.shape[1] <= 256 else 2
    for step in range(total):
        stage, begins = divmod(step, _STEPS)
        if begins == 0:
            near, motion = _nearest(points, antipodal, k), np.zeros_like(points)
        force = _force(points, near, antipodal, doublings=min(2 + stage, steepest))
        motion = 0.8 * motion + 0.2 * (force - points * _dot(points, force))
        fastest = float(np.sqrt(_dot(motion, motion)).max())
        if fastest > 0:
            reach = 0.1 * (1 - step / total) * (1 - step / total) + 0.0005
            points = _unit(points + reach * typical / fastest * motion)
    return points


def _force(points: Array, near: npt.NDArray[np.intp], antipodal: bool, doublings: int) -> Array:
    """Return Σ_j (d_min/d_ij)^{2p} (q_i − q_j) over near points, p = 2^doublings: for large p only the closest."""
    pairs = []
    for row in near:  # (n,): one neighbour of every point
        other = points[:, row]
        cosine = _dot(points, other)
        sign = np.where(cosine < 0, -1.0, 1.0) if antipodal else np.ones_like(cosine)
        pairs.append((sign * other, 2 - 2 * sign * cosine))
    closest = min(float(chord.min()) for _, chord in pairs)
    force = np.zeros_like(points)
    for other, chord in pairs:
        weight = closest / chord
        for _ in range(doublings):
            weight = weight * weight
        force = force + weight * (points - other)
    return force


def _nearest(points: Array, antipodal: bool, k: int) -> npt.NDArray[np.intp]:
    """Return the indices `(k, n)` of the k nearest neighbours of every point."""
    found = []
    for begin in range(0, points.shape[1], 512):
        cosine = _dot(points[:, begin : begin + 512, None], points[:, None, :])
        closeness = np.abs(cosine) if antipodal else cosine
        rows = np.arange(len(closeness))
        closeness[rows, begin + rows] = -2  # not its own neighbour
        found.append(np.sort(torch.from_numpy(closeness).topk(k, sorted=False).indices.numpy(), axis=1))
    return np.concatenate(found).T


def _dot(a: Array, b: Array) -> Array:
    total: Array = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def _unit(points: Array) -> Array:
    return points / np.sqrt(_dot(points, points))


def _spiral(n: int) -> Array:
    """Return a Fibonacci spiral on S², `(3, n)`."""
    i = np.arange(n) + 0.5
    z = 1 - 2 * i / n
    angle = i * math.pi * (3 - math.sqrt(5))
    radius = np.sqrt(1 - z * z)
    return np.stack((radius * np.cos(angle), radius * np.sin(angle), z))


def _quaternion_spiral(n: int) -> Array:
    """Return a double spiral on S³, `(4, n)`; its two angles advance by incommensurable steps."""
    i = np.arange(n) + 0.5
    inner, outer = np.sqrt(i / n), np.sqrt(1 - i / n)
    first, second = 2 * math.pi * i / math.sqrt(2), 2 * math.pi * i / 1.533751168755204288
    return np.stack((inner * np.sin(first), inner * np.cos(first), outer * np.sin(second), outer * np.cos(second)))


def _rotations(q: Tensor) -> Tensor:
    """Return the rotation matrices of unit quaternions `(n, 4)`, vector part first: R = I + 2w[v] + 2[v]²."""
    v, w = q[:, :3], q[:, 3].view(-1, 1, 1)
    zero = torch.zeros_like(q[:, 0])
    x, y, z = v.unbind(1)
    cross = torch.stack((zero, -z, y, z, zero, -x, -y, x, zero), -1).unflatten(-1, (3, 3))
    return torch.eye(3, dtype=q.dtype) + 2 * w * cross + 2 * cross @ cross


def _quadrature(v: Array) -> Array:
    """Return weights of sum 1 that average v to 0 and v vᵀ to I/3; v `(k, n)` holds the entries of n on S², R on SO(3).

    Of all such weights these lie nearest to equal ones. Fewer points than conditions meet them as well as they can, and
    where weights would not be positive, equal ones are returned. The steps are those of conjugate gradients (CGLS).
    """
    k, n = v.shape
    moments = np.stack([*v, *(v[i] * v[j] - (i == j) / 3 for i in range(k) for j in range(i, k))])
    mean = _sum(moments) / n
    moments = moments - mean[:, None]  # what is left changes no sum of weights
    change, residual = np.zeros(n), -mean
    direction = gradient = _dot(moments, np.broadcast_to(residual[:, None], moments.shape))
    energy = start = _sum(gradient * gradient)
    for _ in range(_SOLVER_STEPS):
        if energy <= 1e-28 * start:
            break
        image = _sum(moments * direction)
        step = energy / _sum(image * image)
        change, residual = change + step * direction, residual - step * image
        gradient = _dot(moments, np.broadcast_to(residual[:, None], moments.shape))
        previous, energy = energy, _sum(gradient * gradient)
        direction = gradient + energy / previous * direction
    weights: Array = 1 / n + change
    return weights if weights.min() > 0 else np.full(n, 1 / n)


def _sum(values: Array) -> Array:
    """Return the sum over the last axis, in one fixed order: halves added to halves."""
    while values.shape[-1] > 1:
        half = values.shape[-1] // 2
        rest = values[..., 2 * half :]
        values = np.concatenate((values[..., :half] + values[..., half : 2 * half], rest), axis=-1)
    return values[..., 0]
