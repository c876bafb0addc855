"""What the groups are, written down on SciPy and NumPy alone: matrices, logarithms and quotients of elements."""

import math

import numpy as np
from scipy.linalg import expm, logm, polar
from scipy.spatial.transform import Rotation

import liespline as ls


def matrix(group: ls.Group, h: np.ndarray) -> np.ndarray:
    """The matrix by which h acts on R^d, written down for each group."""
    match group:
        case ls.SO2():
            c, s = math.cos(h[0]), math.sin(h[0])
            return np.array([[c, -s], [s, c]])
        case ls.Scale():
            return h[0] * np.eye(group.space_dim)
        case ls.O2():
            c, s = math.cos(h[0]), math.sin(h[0])
            return np.array([[c, -s], [s, c]]) @ np.diag([1, h[1]])
        case ls.Trivial():
            return np.eye(group.space_dim)
        case ls.Product():
            return np.linalg.multi_dot([matrix(part, own) for part, own in factors(group, h)])
    return h  # the matrix groups


def factors(group: ls.Product, h: np.ndarray) -> list[tuple[ls.Group, np.ndarray]]:
    """An element of a product as elements of its groups."""
    ends = np.cumsum([math.prod(part.element_shape) for part in group.factors])[:-1]
    return [(part, own.reshape(part.element_shape)) for part, own in zip(group.factors, np.split(h, ends), strict=True)]


def relative(group: ls.Group, g: np.ndarray, h: np.ndarray) -> np.ndarray:
    """g⁻¹h as an element."""
    match group:
        case ls.SO2():
            return h - g
        case ls.O2():
            return np.array([g[1] * (h[0] - g[0]), g[1] * h[1]])
        case ls.Scale():
            return h / g
        case ls.Trivial():
            return h
        case ls.Product():
            pairs = zip(factors(group, g), factors(group, h), strict=True)
            return np.concatenate([relative(part, own, other).ravel() for (part, own), (_, other) in pairs])
    return np.linalg.inv(g) @ h


def log(group: ls.Group, h: np.ndarray) -> np.ndarray:
    """Log h in the algebra's coordinates; infinite where no path leads there."""
    match group:
        case ls.SO2():
            return (h + math.pi) % (2 * math.pi) - math.pi
        case ls.Scale():
            return np.log(h)
        case ls.SO3():
            return Rotation.from_matrix(h).as_rotvec()
        case ls.O2():
            return log(ls.SO2(), h[:1]) if h[1] > 0 else np.array([math.inf])
        case ls.O3():
            return log(ls.SO3(), h) if np.linalg.det(h) > 0 else np.full(3, math.inf)
        case ls.GL2():
            turn, stretch = polar(h, side="left")
            s = np.real(logm(stretch))
            return np.array([np.trace(s) / 2, (s[0, 0] - s[1, 1]) / 2, s[0, 1], math.atan2(turn[1, 0], turn[0, 0])])
        case ls.MatrixGroup():
            a = np.real(logm(h)).ravel()
            return np.linalg.lstsq(group.generators.numpy().reshape(group.dim, -1).T, a, rcond=None)[0]
        case ls.Trivial():
            return np.zeros(0)
        case ls.Product():
            return np.concatenate([log(part, own) for part, own in factors(group, h)])
    a = np.real(logm(h))
    return np.array([a[0, 0], a[1, 1], a[0, 1]])


def closes(group: ls.Group) -> list[bool]:
    """For each axis of the algebra, whether it is an angle that comes back to itself after 2π."""
    match group:
        case ls.SO2() | ls.O2():
            return [True]
        case ls.GL2():
            return [False, False, False, True]
        case ls.Product():
            return [axis for part in group.factors for axis in closes(part)]
        case ls.MatrixGroup():
            g = group.generators.numpy()
            once = [np.allclose(expm(2 * math.pi * one), np.eye(group.space_dim)) for one in g]
            return [bool(back and np.allclose(one @ g, g @ one)) for back, one in zip(once, g, strict=True)]
    return [False] * group.dim
