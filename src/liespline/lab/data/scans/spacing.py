"""Voxels of unequal sides made cubes, so that a rotation of the samples is one of the patient."""

import math
from collections.abc import Sequence

import numpy as np

from ..arrays import Array


def cube_side(spacing: Sequence[float]) -> float:
    """The side of a cube as large as a voxel: the geometric mean of its sides."""
    return float(math.prod(spacing) ** (1 / len(spacing)))


def resample(values: Array, sizes: Sequence[int], steps: Sequence[float], nearest: bool = False) -> Array:
    """`values` (C, *space) at `sizes` new samples, `steps` old ones apart along each axis, the centre kept.

    Linear between samples; where steps exceed 1, the weights widen with them so that nothing is skipped:
    w(x) ∝ max(0, 1 − |x| / max(1, step)). `nearest` takes the nearest sample instead, for masks.
    """
    out = values if nearest else values.astype(np.float32)
    for axis, (size, step) in enumerate(zip(sizes, steps, strict=True), 1):
        own = out.shape[axis]
        places = (np.arange(size) - (size - 1) / 2) * step + (own - 1) / 2
        places = places.clip(0, own - 1)
        if nearest:
            out = np.take(out, np.floor(places + 0.5).astype(np.int64).clip(0, own - 1), axis)
            continue
        weights = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(own)) / max(1.0, step))
        weights = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
        out = np.moveaxis(np.tensordot(out, weights, (axis, 1)), -1, axis)
    return np.ascontiguousarray(out)
