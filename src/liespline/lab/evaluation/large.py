"""From a large image file to a mask file, in constant memory; if killed, it continues when started again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import Array
from ..data.large import Windows, read_window
from ..data.large.write import Bands
from ..tiles import Tiling

Progress = Callable[[int, int], None]
NUMBERS = np.arange(256, dtype=np.uint8)


@torch.no_grad()
def segment_large(
    source: Windows,
    out: Path,
    answer: Callable[[Array], Tensor],
    tiling: Tiling,
    key: str,
    progress: Progress = lambda done, total: None,
    values: Array = NUMBERS,
) -> None:
    """Write the class of every pixel of `source` to the tiled TIFF `out`, with the source's place in the world.

    `answer` maps samples (C, h, w) as stored to logits (K, h, w); `key` names the network and the image, so that
    rows made by another network are not taken up again. `progress(done, total)` counts tiles. `values` is what is
    written for each class.
    """
    _, height, width = source.shape
    (above, below), (before, after) = tiling.margins(height), tiling.margins(width)
    bands, columns = tiling.spans(above + height + below), tiling.spans(before + width + after)
    rows = Bands(out, (height, width), f"{key} {tiling}")
    # Rows of the image that are complete once a band is done; margins are not part of it.
    ends = [min(height, band.keep[1] - above) for band in bands]
    finished = sum(end <= rows.done for end in ends)
    rows.keep(ends[finished - 1] if finished else 0)
    for number, band in enumerate(bands[finished:], finished):
        made = np.empty((band.keep[1] - band.keep[0], before + width + after), np.uint8)
        for place, column in enumerate(columns):
            progress(number * len(columns) + place, len(bands) * len(columns))
            top, bottom = (at - above for at in band.read)
            left, right = (at - before for at in column.read)
            logits = answer(read_window(source, top, left, bottom, right))
            made[:, column.outer] = logits[:, band.inner, column.inner].argmax(0).to(torch.uint8).cpu().numpy()
        first = max(0, above - band.keep[0])
        rows.append(made[first : first + ends[number] - rows.done, before : before + width])
    progress(len(bands) * len(columns), len(bands) * len(columns))
    rows.finish(source.place, values)
