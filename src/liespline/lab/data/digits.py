"""The 1,797 handwritten digits that ship with scikit-learn: real data without a download."""

import numpy as np
import sklearn.datasets
import torch

from ..settings import one_of
from ..transforms import resampled, rotations
from .listing import stratified
from .split import SPLITS, Split

CLASSES = tuple("0123456789")
SIDE = 24
# The 8×8 drawings become 17×17: their diagonal is 24, so that no rotation moves a stroke out of the image.
_MAGNIFICATION = 17 / 8
_ROUNDING = 1e-6  # how far from the edge numbers are rounded, so that no last bit decides
_SHARES = (0.6, 0.15, 0.25)


def load(split: str, rotated: bool = False) -> Split:
    """A split, upright or each image rotated by its own fixed angle: uint8 (B, 1, 24, 24), targets (B,)."""
    digits = sklearn.datasets.load_digits()
    rows = stratified(digits.target, one_of("split", split, SPLITS), seed=0, shares=_SHARES)
    rng = np.random.default_rng([1, SPLITS.index(split)])
    angles = rng.uniform(0, 2 * np.pi, len(rows)) if rotated else np.zeros(len(rows))
    # In float64, for the same images on every machine: in float32, one in some 300 has another pixel on another one.
    drawn, turns = torch.from_numpy(digits.images[rows] / 16), rotations(torch.from_numpy(angles))
    shown = resampled(drawn.unsqueeze(1), turns / _MAGNIFICATION, (SIDE, SIDE), "bicubic")[:, 0]
    images = (255 * shown.clamp(0, 1) + _ROUNDING).round().to(torch.uint8).numpy()
    return Split(images, digits.target[rows].astype(np.int64), CLASSES)
