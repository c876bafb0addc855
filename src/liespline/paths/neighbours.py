"""Images of few channels on a GPU: several neighbours along the last axis become channels, of inputs and outputs alike.

cuDNN computes as if a colour image had 32 channels or more. With four neighbours it has 12 inputs and four times the
outputs, at 8 taps for 5 along that axis: less waste, and the result lies in memory as if it had been computed singly.
"""

from torch import Tensor
from torch.nn import functional as F

from liespline.paths import cuda

Size = tuple[int, ...]
_INPUTS = 16  # channels that are worth filling
_UNIT = 8  # what cuDNN would pad channels to


def convolve(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    """`cuda.convolve`, by neighbours where that pays."""
    count = _count(x, kernel, stride, padding)
    return cuda.convolve(x, kernel, stride, padding) if count == 1 else together(x, kernel, count, stride, padding)


def together(x: Tensor, kernel: Tensor, count: int, stride: Size, padding: Size) -> Tensor:
    """Correlate x (B, C, *space) with kernel (O, A, C, *W) -> (B, O, A, *space), `count` outputs at a time.

    Output count·p + q reads inputs from count·p + q on: its kernel is the one of q = 0, moved right by q.
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
    out = cuda.convolve(last, moved, stride, (*padding[:-1], 0))  # (B, output q, O·A, *space', p)
    out = out.movedim((1, 2), (-2, -1)).flatten(-3, -2)
    return out.movedim(-1, 1).unflatten(1, kernel.shape[:2])


def _count(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> int:
    """How many neighbours: as many as fill the channels, divide the outputs, and need no padding behind them."""
    if kernel.ndim != 3 + len(stride) or stride[-1] != 1:
        return 1
    columns = x.shape[-1] + 2 * padding[-1] - kernel.shape[-1] + 1
    outputs = kernel.shape[0] * kernel.shape[1]
    fitting = [n for n in (8, 4, 2) if n * x.shape[1] <= _INPUTS and columns % n == 0 and not cuda.gap(n * outputs)]
    return fitting[0] if fitting else 1
