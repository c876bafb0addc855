"""What each path costs, in multiplications an output sample: enough to choose among them."""

import math
from dataclasses import dataclass

from liespline.paths.plan import Route

Size = tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """The numbers a path's cost depends on."""

    channels: int  # C
    outputs: int  # O
    fields: int  # N_in
    windows: tuple[tuple[int, int], ...]  # (elements, samples in the window), one entry a part
    rows: int  # R, distinct mixed fields


# oneDNN computes output channels sixteen at a time, so few channels a group pay for sixteen.
_CPU_LANES = 16
# Moving one number through memory costs about this many multiplications, forward and backward alike.
_CPU_MOVE = 60.0


def dense(shape: Shape) -> float:
    """One convolution a window, from every field to every element of the part."""
    inputs = shape.channels * shape.fields
    return sum(
        _round_up(elements * shape.outputs, _CPU_LANES) * inputs * samples
        for elements, samples in shape.windows
    )


def banded(shape: Shape, route: Route) -> float:
    """A gather of the fields each group reads, after mixing them where the route does, and the blocks."""
    total = 0.0
    for (elements, samples), width in zip(shape.windows, route.widths, strict=True):
        groups = elements // route.group
        inputs = groups * width * shape.channels
        total += inputs * (_round_up(route.group * shape.outputs, _CPU_LANES) * samples + _CPU_MOVE)
    if route.mixed:
        total += shape.rows * shape.channels * (shape.fields + _CPU_MOVE)
    return total


def _round_up(value: int, multiple: int) -> int:
    return math.ceil(value / multiple) * multiple
