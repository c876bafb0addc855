"""The 1,797 handwritten digits that ship with scikit-learn: real data without a download."""

import numpy as np
import sklearn.datasets

from . import resample
from .folds import stratified
from .split import SPLITS, Split, check_split

CLASSES = tuple("0123456789")
SIDE = 24
# The 8×8 drawings become 17×17: their diagonal is 24, so that no rotation moves a stroke out of the image.
_MAGNIFICATION = 17 / 8
_SHARES = (0.6, 0.15, 0.25)


def load(split: str, rotated: bool = False) -> Split:
    """A split, upright or each image rotated by its own fixed angle: uint8 (B, 1, 24, 24), targets (B,)."""
    digits = sklearn.datasets.load_digits()
    rows = stratified(digits.target, check_split(split), seed=0, shares=_SHARES)
    rng = np.random.default_rng([1, SPLITS.index(split)])
    angles = rng.uniform(0, 2 * np.pi, len(rows)) if rotated else np.zeros(len(rows))
    images = resample.rotated(digits.images[rows] / 16, angles, SIDE, _MAGNIFICATION)
    return Split(images, digits.target[rows].astype(np.int64), CLASSES)
