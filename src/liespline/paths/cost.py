"""What each path costs, in multiplications an output sample: enough to choose among them.

The constants are measured: oneDNN on an AVX-512 core, cuDNN and our Triton kernels on an H200 in bfloat16. Only
ratios matter, and forward and backward cost the same multiple everywhere, so one number serves both.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """Elements that share a window, and what a route makes of them."""

    elements: int
    window: tuple[int, ...]
    channels: int  # C
    outputs: int  # O
    height: int  # samples of the input along the first axis
    rank: int  # of the samples along that axis, 0 where it is full
    width: int  # fields a group reads
    group: int = 1

    @property
    def samples(self) -> int:
        """How many the window has."""
        total = 1
        for size in self.window:
            total *= size
        return total


@dataclass(frozen=True)
class Machine:
    """Costs of a device, in its own multiplications."""

    lanes: int  # channels that its convolutions compute at a time
    move: float  # taking one number through memory
    column: float  # bringing one tap's sum to its output (`triton.kernels._meet`)
    launch: float  # what starting the Triton kernels costs the host, over what dense convolutions cost it


CPU = Machine(lanes=16, move=60.0, column=0.0, launch=0.0)
CUDA = Machine(lanes=8, move=400.0, column=735.0, launch=7e10)


def dense(part: Part, machine: Machine) -> float:
    """One convolution from every field, of which the part's width is then the number, to every element."""
    return _round_up(part.elements * part.outputs, machine.lanes) * part.width * part.channels * part.samples


def mixing(rows: int, fields: int, channels: int, machine: Machine) -> float:
    """The product that makes mixed fields."""
    return rows * channels * (fields + machine.move)


def banded(part: Part, machine: Machine) -> float:
    """A gather of the fields each group reads, then a grouped convolution."""
    inputs = part.elements // part.group * part.width * part.channels
    return inputs * (_round_up(part.group * part.outputs, machine.lanes) * part.samples + machine.move)


def separable(part: Part, machine: Machine) -> float:
    """The gather, a convolution along all axes but the first, and a product along that one."""
    inputs = part.elements // part.group * part.width * part.channels
    outputs = _round_up(part.rank * part.group * part.outputs, machine.lanes)
    first = inputs * (outputs * (part.samples // part.window[0]) + machine.move)
    return first + part.elements * part.outputs * part.rank * (part.height + 2 * machine.move)


def triton(part: Part, machine: Machine) -> float:
    """The blocks alone, read where they are, in tiles of at least sixteen channels and outputs."""
    inputs, outputs = part.width * _round_up(part.channels, 16), _round_up(part.outputs, 16)
    taps = part.window[-1] if part.window else 1
    return part.elements * outputs * (inputs * part.samples + machine.column * taps)


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
