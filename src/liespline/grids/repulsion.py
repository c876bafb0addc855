"""Approximately uniform grids of any size on compact curved groups (section 3.3, "repulsion model")."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import roma
import torch
from torch import Tensor

from ..groups import SO3, Group, Sphere
from .grid import Grid, whole
from .regular import neighbour_distance

Array = npt.NDArray[np.float64]

_STAGES, _STEPS, _NEIGHBOURS = 12, 25, 24


def repulsion(group: Group, n: int, *, seed: int = 0) -> Grid:
    """Return n elements of SO(3) or S² that push each other apart: the smallest ‖Log h_i⁻¹h_j‖ is maximised.

    Starts from a spiral shaken by `seed` and lets near points repel each other. The same seed gives
    the same grid on any machine. Weights integrate constants, and harmonics of degree 1 and 2 as well where that
    leaves them positive.
    """
    whole("repulsion", "n", n)
    if not isinstance(group, SO3 | Sphere):
        raise ValueError(f"repulsion: group = {group!r}; use SO3() or Sphere(), or uniform/local for other groups")
    # Both spaces are spheres: S² in R³, and SO(3) as unit quaternions ±q in R⁴, where chords order as angles do.
    antipodal = isinstance(group, SO3)
    volume = 8 * math.pi**2 if antipodal else 4 * math.pi
    typical = math.pow(math.pi**2 / n, 1 / 3) if antipodal else math.sqrt(volume / n)
    start = _quaternion_spiral(n) if antipodal else _spiral(n)
    start = start + 0.3 * typical * np.random.default_rng(seed).uniform(-1, 1, start.shape)
    # sin, cos and pow may differ in the last bit between machines; what follows uses exactly rounded operations
    # in a fixed order only, so from a rounded start every machine walks the same way.
    points = torch.from_numpy(_spread(np.round(start * 2**30) / 2**30, antipodal, round(typical, 9)).T.copy())
    elements = roma.unitquat_to_rotmat(points) if antipodal else points
    weights = volume * _quadrature(elements.flatten(1))
    return Grid(group, elements, weights, neighbour_distance(group, elements))


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
    """Return Σ_j (d_min/d_ij)^{2p} (q_i − q_j) over near points, p = 2^doublings: ever more the closest pair alone."""
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
        found.append(np.sort(np.argpartition(-closeness, k - 1, axis=1)[:, :k], axis=1))
    return np.concatenate(found).T


def _dot(a: Array, b: Array) -> Array:
    total: Array = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def _unit(points: Array) -> Array:
    scaled: Array = points / np.sqrt(_dot(points, points))
    return scaled


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


def _quadrature(v: Tensor) -> Tensor:
    """Return weights of sum 1 that average 1, v and v vᵀ exactly: to 1, 0 and I/3, for v = n on S² and v = R on SO(3).

    Of all such weights these lie nearest to equal ones; where they would not be positive, equal ones are returned.
    """
    n, k = v.shape
    upper = torch.triu_indices(k, k)
    moments = torch.cat([torch.ones(1, n), v.T, (v[:, upper[0]] * v[:, upper[1]]).T]).to(v)
    exact = torch.cat([torch.ones(1), torch.zeros(k), (upper[0] == upper[1]).float() / 3]).to(v)
    equal = torch.full((n,), 1 / n).to(v)
    weights = equal + torch.linalg.pinv(moments, rtol=1e-10) @ (exact - moments @ equal)
    return weights if bool((weights > 0).all()) else equal
