"""What each path costs, in multiplications an output sample: enough to choose among them.

The constants are measured: oneDNN on an AVX-512 core, cuDNN and our Triton kernels on an H200 in bfloat16. Only
ratios matter, and forward and backward cost the same multiple everywhere, so one number serves both.
"""

from dataclasses import dataclass

from liespline.paths.triton import tiles


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
    positions: int = 1  # samples of the batch, over which what is paid once is shared

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
    launch: float  # what starting the Triton kernels costs the host, over what dense convolutions cost it


CPU = Machine(lanes=16, move=60.0, launch=0.0)
CUDA = Machine(lanes=16, move=400.0, launch=7e10)


def dense(part: Part, machine: Machine) -> float:
    """One convolution from every field, of which the part's width is then the number, to every element."""
    return convolution(part.width * part.channels, part.elements * part.outputs, part.samples, machine)


def convolution(inputs: int, outputs: int, samples: int, machine: Machine) -> float:
    """One by the vendor's library, with as many samples in its window."""
    if machine is CUDA:  # there both sides are padded, `cuda.gap`
        inputs = _round_up(inputs, machine.lanes)
    return _round_up(outputs, machine.lanes) * inputs * samples


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
    """The blocks alone, read where they are: a fit to fields × samples × channels, in whole tiles of the kernels."""
    inputs, outputs = tiles.padded(part.channels), tiles.padded(part.outputs)
    terms = part.width * part.samples * (1.4 * inputs + 18)
    return part.elements * outputs * (terms + 2300) + machine.launch / part.positions


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
