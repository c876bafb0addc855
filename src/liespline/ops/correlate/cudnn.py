"""The convolution on a GPU: channels innermost and in multiples of 16, whatever layouts come in.

cuDNN takes 1.5 ms for 132 channels where it takes 1.0 ms for 144, and turns any other layout around in every layer.
The kernel is cast, padded and laid out by one copy. For torch.compile all of it is one operator: left to itself the
compiler chooses layouts of its own for convolutions, and torch 2.11 then reads past the end of what it copies.
For large windows in 3-D cuDNN's first guess is no tensor-core kernel: 113 of 151 ms a step with 5³ (H200).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..layout import Order, output_size
from ..operator import Differentiable, Gradients, Operator
from ..path import Path, Question
from . import reference
from .reference import CONVOLUTIONS

Ints = Sequence[int]
_INPUTS = 16  # channels that are worth filling with neighbours
_UNIT = 8  # what cuDNN would pad channels to


def price(q: Question) -> float | None:
    """As any convolution, of images and volumes; not under transforms, which know torch's own operators alone."""
    return reference.price(q) if q.cuda and len(q.window) > 1 and not q.transformed else None


def in_order(x: Tensor, kernel: Tensor, stride: Size, padding: Size, order: Order) -> Tensor:
    """Correlate, with the channels of an element together in the result if they are to be."""
    d, own = len(stride), _product if _is_product(x, kernel, stride, padding) else convolve
    if order is Order.PLANES:
        return own(x, kernel, stride, padding)
    kernel = kernel.transpose(0, 1)
    if x.ndim > 2 + d:
        x, kernel = x.transpose(1, 2), kernel.transpose(2, 3)
    return own(x, kernel, stride, padding).transpose(1, 2)


PATH = Path("cudnn", price, in_order)


def _is_product(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> bool:
    """Whether the window is one sample, and channels need no padding: cuBLAS is faster than a convolution."""
    d = len(stride)
    counts = math.prod(x.shape[1 : x.ndim - d]), kernel.shape[0] * kernel.shape[1]
    one = math.prod(kernel.shape[kernel.ndim - d :]) == max(stride) == 1 and not any(padding)
    return one and not any(count % 8 for count in counts)


def _product(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    d, weight = len(stride), kernel.flatten(0, 1).flatten(1).to(x.dtype)
    out = F.linear(x.flatten(1, x.ndim - 1 - d).movedim(1, -1), weight)
    return out.movedim(-1, 1).unflatten(1, kernel.shape[:2])


def convolve(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    """Correlate x (B, *inputs, *space) with kernel (O, A, *inputs, *W) -> (B, O, A, *space), in 2 or 3 dimensions."""
    count = _neighbours(x, kernel, stride, padding)
    return _convolve(x, kernel, stride, padding) if count == 1 else together(x, kernel, count, stride, padding)


def together(x: Tensor, kernel: Tensor, count: int, stride: Size, padding: Size) -> Tensor:
    """Correlate an image of few channels: `count` neighbours along the last axis become channels, in and out alike.

    cuDNN computes as if a colour image had 32 channels or more. With four neighbours it has 12 inputs and four times
    the outputs, at 8 taps for 5 along that axis: less waste, and the result lies in memory as if computed singly.
    Output count·p + q reads inputs from count·p + q on: its kernel is the one of q = 0, moved right by q.

    x (B, C, *space), kernel (O, A, C, *W) -> (B, O, A, *space).
    """
    channels, width, border = x.shape[1], kernel.shape[-1], padding[-1]
    taps = -(-(width + count - 1) // count)
    more = 0
    while count * (channels + more) % _UNIT:
        more += 1
    # A row of zeros after the kernel that is one longer than the rows it is cut into moves each row on by one.
    line = F.pad(kernel, (0, count * taps + 1 - width, *(0, 0) * (len(stride) - 1), 0, more))
    rows = line.unsqueeze(-2).expand(*line.shape[:-1], count, line.shape[-1]).flatten(-2)[..., : count * count * taps]
    rows = rows.unflatten(-1, (count, taps, count))  # (O, A, C, *W', output q, tap, input)
    moved = rows.movedim((-3, -1), (0, 3)).flatten(1, 2)  # (output q, O·A, input, C, *W', tap)

    last = F.pad(x.movedim(1, -1), (0, more, border, border + count * (taps - 1) - width + 1))
    last = last.unflatten(-2, (-1, count)).movedim((-2, -1), (1, 2))  # (B, input, C, *space', p)
    out = _convolve(last, moved, stride, (*padding[:-1], 0))  # (B, output q, O·A, *space', p)
    out = out.movedim((1, 2), (-2, -1)).flatten(-3, -2)
    return out.movedim(-1, 1).unflatten(1, kernel.shape[:2])


def _neighbours(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> int:
    """How many neighbours: as many as fill the channels, divide the outputs, and need no padding behind them."""
    if kernel.ndim != 3 + len(stride) or stride[-1] != 1:
        return 1
    (columns,) = output_size(x.shape[-1:], kernel.shape[-1:], stride[-1:], padding[-1:])
    outputs = kernel.shape[0] * kernel.shape[1]
    fitting = [n for n in (8, 4, 2) if n * x.shape[1] <= _INPUTS and columns % n == 0 and not gap(n * outputs)]
    return fitting[0] if fitting else 1


def _convolve(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    d = len(stride)
    # Padded once, and kept so for the backward pass in place of x.
    flat = pad(x, d) if gap(math.prod(x.shape[1:-d])) else x.flatten(1, x.ndim - 1 - d)
    out: Tensor = correlate(flat, kernel, stride, padding)
    return out


def _forward(x: Tensor, kernel: Tensor, stride: Ints, padding: Ints) -> Tensor:
    d, outputs = len(stride), kernel.shape[0] * kernel.shape[1]
    with _searched(kernel.shape[-d:]):
        out = CONVOLUTIONS[d](_channels_last(x), _laid_out(kernel, d, x.dtype), None, tuple(stride), tuple(padding))
    return _channels_last(out).narrow(1, 0, outputs).unflatten(1, kernel.shape[:2])


def _backward(
    grad: Tensor, x: Tensor, kernel: Tensor, stride: Ints, padding: Ints, needs: list[bool]
) -> tuple[Tensor, Tensor]:
    d, none = len(stride), x.new_empty(0)
    inputs, outputs = kernel.shape[2:-d], kernel.shape[0] * kernel.shape[1]
    with _searched(kernel.shape[-d:]):
        dx, dw, _ = torch.ops.aten.convolution_backward(
            _padded(grad, d), _channels_last(x), _laid_out(kernel, d, x.dtype), None,
            list(stride), list(padding), [1] * d, False, [0] * d, 1, [*needs, False],
        )  # fmt: skip
    if needs[1]:
        dw = dw[:outputs, : math.prod(inputs)].unflatten(1, inputs).unflatten(0, kernel.shape[:2])
        dw = torch.empty_like(kernel).copy_(dw)  # in the layout the kernel was sampled in
    return _channels_last(dx) if needs[0] else none, dw if needs[1] else none


@contextmanager
def _searched(window: Sequence[int]) -> Iterator[None]:
    """Let cuDNN try its kernels on a new shape where its guess is bad, unless runs have to repeat exactly."""
    exact = torch.backends.cudnn.deterministic or torch.are_deterministic_algorithms_enabled()
    with _search if len(window) == 3 and max(window) > 3 and not exact else nullcontext():
        yield


class _Search:
    """cuDNN's search, which torch turns on for a process: on from the first thread that asks to the last one's end."""

    def __init__(self) -> None:
        self.lock, self.asking, self.before = threading.Lock(), 0, False

    def __enter__(self) -> None:
        with self.lock:
            if not self.asking:
                self.before, torch.backends.cudnn.benchmark = torch.backends.cudnn.benchmark, True
            self.asking += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.asking -= 1
            if not self.asking:
                torch.backends.cudnn.benchmark = self.before


_search = _Search()


def gap(channels: int) -> int:
    """Channels of zeros that are worth adding: cuDNN's fast kernels take multiples of 8, its fastest of 16."""
    return -channels % (16 if channels >= 64 else 8) if channels >= 24 else 0


def _channels_last(x: Tensor) -> Tensor:
    return x.movedim(1, -1).contiguous().movedim(-1, 1)


def _padded(x: Tensor, d: int) -> Tensor:
    """(B, *channels, *space) with channels as one innermost axis, and zeros up to the next multiple."""
    channels = x.shape[1:-d]
    count = math.prod(channels)
    more = gap(count)
    if not more:
        return _channels_last(x.flatten(1, x.ndim - 1 - d))
    out = x.new_empty(x.shape[0], *x.shape[-d:], count + more)
    inner = tuple(range(-len(channels), 0))
    out[..., :count].unflatten(-1, channels).copy_(x.movedim(tuple(range(1, 1 + len(channels))), inner))
    out[..., count:] = 0
    return out.movedim(-1, 1)


def _laid_out(kernel: Tensor, d: int, dtype: torch.dtype) -> Tensor:
    """(O, A, *inputs, *W) as the weight (O·A, inputs, *W) of a convolution."""
    window, inputs = kernel.shape[-d:], kernel.shape[2:-d]
    rows, columns = kernel.shape[0] * kernel.shape[1], math.prod(inputs)
    more = gap(rows), gap(columns)
    shape = (rows + more[0], *window, columns + more[1])
    out = kernel.new_zeros(shape, dtype=dtype) if any(more) else kernel.new_empty(shape, dtype=dtype)
    inner = out[:rows, ..., :columns].unflatten(0, kernel.shape[:2]).unflatten(-1, inputs)
    inner.copy_(kernel.movedim(tuple(range(2, 2 + len(inputs))), tuple(range(-len(inputs), 0))))
    return out.movedim(-1, 1)


# ---- the same as operators of torch's library ----


def _fake_padded(x: Tensor, d: int) -> Tensor:
    count = math.prod(x.shape[1:-d])
    return x.new_empty(x.shape[0], *x.shape[-d:], count + gap(count)).movedim(-1, 1)


def _fake_forward(x: Tensor, kernel: Tensor, stride: Ints, padding: Ints) -> Tensor:
    d, count = len(stride), kernel.shape[0] * kernel.shape[1]
    space = output_size(x.shape[-d:], kernel.shape[-d:], stride, padding)
    # Memory as a padded convolution leaves it: channels innermost, and a gap after them.
    out = x.new_empty(x.shape[0], *space, count + gap(count)).movedim(-1, 1)
    return out.narrow(1, 0, count).unflatten(1, kernel.shape[:2])


def _fake_backward(
    grad: Tensor, x: Tensor, kernel: Tensor, stride: Ints, padding: Ints, needs: Sequence[bool]
) -> tuple[Tensor, Tensor]:
    dx = _channels_last(torch.empty_like(x)) if needs[0] else x.new_empty(0)
    return dx, torch.empty_like(kernel) if needs[1] else x.new_empty(0)


def _pad_plain(x: Tensor, d: int) -> Tensor:
    flat = x.flatten(1, x.ndim - 1 - d)
    return F.pad(flat, (*(0, 0) * d, 0, gap(flat.shape[1])))


def _pad_gradient(_: Sequence[bool], grad: Tensor, x: Tensor, d: int) -> Gradients:
    channels = x.shape[1:-d]
    return (grad.narrow(1, 0, math.prod(channels)).reshape(grad.shape[0], *channels, *grad.shape[2:]),)


def _plain_of_padded(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    return reference.correlate(x.narrow(1, 0, kernel.shape[2 : -len(stride)].numel()), kernel, stride, padding)


def _gradients(
    needs: Sequence[bool], grad: Tensor, x: Tensor, kernel: Tensor, stride: Ints, padding: Ints
) -> Gradients:
    dx, dw = _convolve_backward(grad, x, kernel, stride, padding, list(needs))
    return dx if needs[0] else None, dw if needs[1] else None


pad = Differentiable(
    "pad(Tensor x, SymInt d) -> Tensor", _padded, _fake_padded, plain=_pad_plain, gradients=_pad_gradient, tensors=1
)
_convolve_backward = Operator(
    "convolve_backward(Tensor grad, Tensor x, Tensor kernel, SymInt[] stride, SymInt[] padding, bool[] needs) "
    "-> (Tensor, Tensor)",
    _backward, _fake_backward,
)  # fmt: skip
correlate = Differentiable(
    "convolve(Tensor x, Tensor kernel, SymInt[] stride, SymInt[] padding) -> Tensor",
    _forward, _fake_forward, plain=_plain_of_padded, gradients=_gradients,
)  # fmt: skip
