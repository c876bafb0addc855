"""Sets of matrices, compared whatever their order."""

import numpy as np


def same_sets(found, expected):
    """Whether two sets of matrices are equal, whatever their order."""
    found, expected = (np.asarray(m, dtype=float).reshape(len(m), -1) for m in (found, expected))
    distance = np.abs(found[:, None] - expected[None]).max(-1)
    return found.shape == expected.shape and bool((distance.min(0) < 1e-9).all() and (distance.min(1) < 1e-9).all())
