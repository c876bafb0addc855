"""How often a run is validated."""

from __future__ import annotations

import math

from ..data import Split
from ..data.mask_split import MaskSplit


def validation_interval(train: Split, valid: Split) -> int:
    """After how many epochs to validate: ⌈samples of the validation images / samples of an epoch's patches⌉.

    Images with masks are trained on in patches and validated whole, which can be a hundred times as much. A step of
    training costs about three passes over its samples, so validation takes a quarter of the time at most. It is
    counted and not timed: a resumed run validates when the uninterrupted one would have.
    """
    if not (isinstance(train, MaskSplit) and isinstance(valid, MaskSplit)):
        return 1
    return max(1, math.ceil(valid.samples / train.samples_drawn))


def interval_words(train: Split, valid: Split) -> list[str]:
    """A remark for those who wonder why epochs are without scores."""
    every = validation_interval(train, valid)
    if every == 1 or not (isinstance(train, MaskSplit) and isinstance(valid, MaskSplit)):
        return []
    return [
        f"the validation images have {valid.samples:,} samples, the patches of an epoch {train.samples_drawn:,}: "
        f"validated every {every} epochs, and after the last"
    ]
