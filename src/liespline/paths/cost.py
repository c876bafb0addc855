"""What each path costs, in multiplications an output sample: enough to choose among them.

The constants are measured: oneDNN on an AVX-512 core, cuDNN and our Triton kernels on an H200 in bfloat16. Only
ratios matter, and forward and backward cost the same multiple everywhere, so one number serves both.
"""

from dataclasses import dataclass

from liespline.paths.plan import Route

_CPU_LANES = 16  # oneDNN computes output channels sixteen at a time
_CPU_MOVE = 60.0  # moving one number through memory, in multiplications
_CUDA_LANES = 8  # what cuDNN's tensor-core convolutions pad channels to
_CUDA_MOVE = 400.0
_CUDA_COLUMN = 735.0  # bringing one tap's sum to its output (`triton.kernels._meet`), in multiplications


@dataclass(frozen=True)
class Part:
    """Elements that share a window."""

    elements: int
    samples: int  # in the whole window
    taps: int  # along its last axis


@dataclass(frozen=True)
class Shape:
    """The numbers a path's cost depends on."""

    channels: int  # C
    outputs: int  # O
    fields: int  # N_in
    rows: int  # R, distinct mixed fields
    parts: tuple[Part, ...]


def dense(shape: Shape, cuda: bool) -> float:
    """One convolution a window, from every field to every element of the part."""
    inputs = shape.channels * shape.fields
    lanes = _CUDA_LANES if cuda else _CPU_LANES
    inputs = _round_up(inputs, lanes) if cuda else inputs
    return sum(_round_up(part.elements * shape.outputs, lanes) * inputs * part.samples for part in shape.parts)


def banded(shape: Shape, route: Route, cuda: bool) -> float:
    """A gather of the fields each group reads, after mixing them where the route does, and the blocks."""
    lanes, move = (_CUDA_LANES, _CUDA_MOVE) if cuda else (_CPU_LANES, _CPU_MOVE)
    total = _mixing(shape, route, move)
    for part, width in zip(shape.parts, route.widths, strict=True):
        inputs = part.elements // route.group * width * shape.channels
        total += inputs * (_round_up(route.group * shape.outputs, lanes) * part.samples + move)
    return total


def triton(shape: Shape, route: Route) -> float:
    """The blocks alone, read where they are, in tiles of at least sixteen channels and outputs."""
    total = _mixing(shape, route, _CUDA_MOVE)
    inputs, outputs = _round_up(shape.channels, 16), _round_up(shape.outputs, 16)
    for part, width in zip(shape.parts, route.widths, strict=True):
        total += part.elements * outputs * (width * inputs * part.samples + _CUDA_COLUMN * part.taps)
    return total


def _mixing(shape: Shape, route: Route, move: float) -> float:
    return shape.rows * shape.channels * (shape.fields + move) if route.mixed else 0.0


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
