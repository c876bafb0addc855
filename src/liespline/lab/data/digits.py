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


SMALLEST = 0.6
"""Of the scales that digits are shrunk to."""


def load(split: str, rotated: bool = False, *, mirrored: bool = False, shrunk: bool = False) -> Split:
    """A split, upright or each image rotated by its own fixed angle: uint8 (B, 1, 24, 24), targets (B,).

    Also `mirrored` left to right before, or `shrunk` to its own scale from SMALLEST to 1.
    """
    digits = sklearn.datasets.load_digits()
    rows = stratified(digits.target, check_split(split), seed=0, shares=_SHARES)
    rng = np.random.default_rng([1, SPLITS.index(split)])
    angles = rng.uniform(0, 2 * np.pi, len(rows)) if rotated else np.zeros(len(rows))
    scales = rng.uniform(SMALLEST, 1, len(rows)) if shrunk else np.ones(len(rows))
    drawn = digits.images[rows] / 16
    images = resample.rotated(drawn[:, :, ::-1] if mirrored else drawn, angles, SIDE, _MAGNIFICATION * scales)
    return Split(images, digits.target[rows].astype(np.int64), CLASSES)
