"""The convolution of images on a CPU by fewer multiplications: tiles of the image meet the kernel as spectra.

A correlation of n samples with k taps has m = n − k + 1 outputs that a cyclic one shares. Its real DFT, with three real
products for a complex one, makes it y = Z((D x) ∘ (E w)) with r ≈ 3n/2 products, and in two dimensions r² products for
m² outputs: at n = 14 and k = 5 four per output, not 25. The sums over channels are r² plain matrix products. A value
that is not finite spreads over the outputs of its tile.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..._torch import real
from ..layout import Order, output_size
from ..operator import by_formula, followed
from ..path import Path, Question

_LONGEST = 32  # samples along a side of a tile
_FEWEST = 4  # outputs along it
# In multiplications of an oneDNN convolution, fitted to 110 measured ones of random shapes and tiles:
_PRODUCT = 1.5  # a multiplication over channels
_TRANSFORM = 2.1  # one along a tile
_MOVE = 11.0  # a number through memory
_MOST = 1 << 22  # numbers at a time, of which a process gets memory without asking for new pages


class Tiles(NamedTuple):
    """Along each axis: the side of a tile, the outputs it has of its own, and how many tiles cover all outputs."""

    sides: tuple[int, int]
    own: tuple[int, int]
    counts: tuple[int, int]


def price(q: Question) -> float | None:
    """What the best tiles take, for images of float32 and float64 on a CPU."""
    followed = q.traced or q.transformed
    exact = q.dtype in (torch.float32, torch.float64)
    if q.cuda or len(q.window) != 2 or q.stride != (1, 1) or not exact or followed:
        return None
    inputs = math.prod(q.inputs)
    if min(q.batch, inputs, *q.size) < 1:
        return None
    return cheapest(q.batch, inputs, q.elements * q.outputs, q.size, q.window)[0]


def whole(x: Tensor, kernel: Tensor, _: Size, padding: Size, __: Order) -> Tensor:
    """Correlate x (B, *inputs, *space) with kernel (O, A, *inputs, *W) -> (B, O, A, *space)."""
    weight = kernel.flatten(2, kernel.ndim - 3).flatten(0, 1).to(x.dtype)
    return correlate(x.flatten(1, x.ndim - 3), weight, padding).unflatten(1, kernel.shape[:2])


PATH = Path("fourier", price, whole)


@lru_cache(maxsize=4096)
def cheapest(batch: int, inputs: int, outputs: int, space: Size, window: Size) -> tuple[float, Tiles]:
    """Return the multiplications for each output sample with the best tiles, and those tiles."""
    found = []
    for high in _sides(space[0], window[0]):
        for wide in _sides(space[1], window[1]):
            (n, o), (m, w) = (high, wide), (high - window[0] + 1, wide - window[1] + 1)
            r, s = _rank(n), _rank(o)
            counts = -(-space[0] // m), -(-space[1] // w)
            through = inputs * (r * n * o + r * s * o) + outputs * (r * s * w + r * m * w)
            moved = inputs * (n * o + 2 * r * o + 2 * r * s) + outputs * (2 * r * s + 2 * r * w + m * w)
            tile = _PRODUCT * r * s * inputs * outputs + _TRANSFORM * through + _MOVE * moved
            kernel = 4 * _MOVE * r * s * inputs * outputs
            total = (tile * counts[0] * counts[1] + kernel / batch) / math.prod(space)
            found.append((total, Tiles((n, o), (m, w), counts)))
    return min(found)


def _sides(outputs: int, taps: int) -> list[int]:
    """Sides that divide the outputs evenly; one at least."""
    evenly = {-(-outputs // count) for count in range(1, outputs + 1)}
    fitting = sorted(m + taps - 1 for m in evenly if m >= _FEWEST and m + taps - 1 <= max(_LONGEST, 2 * taps))
    return fitting or [min(outputs, _FEWEST) + taps - 1]


def _rank(n: int) -> int:
    return 1 + 3 * (n // 2) if n % 2 else 3 * (n // 2) - 1


class Algorithm(NamedTuple):
    """Z((D x) ∘ (E w)) is the correlation of x with w."""

    from_x: Tensor  # D (r, n)
    from_w: Tensor  # E (r, k)
    to_y: Tensor  # Z (n − k + 1, r)


@cache
def algorithm(n: int, k: int, dtype: torch.dtype) -> Algorithm:
    """The algorithm of a tile of n samples and k taps."""
    with real():
        place = torch.arange(n, dtype=torch.float64)
        from_x, from_w, to_y = [], [], []
        for f in range(n // 2 + 1):
            cos, sin = torch.cos(math.tau * f * place / n), torch.sin(math.tau * f * place / n)
            if 2 * f in (0, n):  # real
                parts = [(cos, cos, cos / n)]
            else:  # (p + iq)(u + iv) by u(p + q), p(v − u) and q(u + v)
                parts = [(cos - sin, cos, cos - sin), (cos, sin - cos, -sin), (-sin, cos + sin, -cos)]
                parts = [(a, b, 2 * c / n) for a, b, c in parts]
            for a, b, c in parts:
                from_x.append(a)
                from_w.append(b[:k])
                to_y.append(c[: n - k + 1])
        d, e, z = torch.stack(from_x), torch.stack(from_w), torch.stack(to_y, 1)
        return Algorithm(d.to(dtype), e.to(dtype), z.to(dtype))


def correlate(x: Tensor, weight: Tensor, padding: Size) -> Tensor:
    """`F.conv2d(x, weight, None, 1, padding)`."""
    out: Tensor = _Correlate.apply(x, weight, padding)
    return out


class _Correlate(torch.autograd.Function):
    """Nothing is kept but the operands: their spectra take several times the memory, and little time."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, weight: Tensor, padding: Size) -> Tensor:
        return _forward(x, weight, padding)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, weight, ctx.padding = inputs
        ctx.save_for_backward(x, weight)
        ctx.save_for_forward(x, weight)

    @staticmethod
    def jvp(ctx: Any, x_change: Tensor | None, weight_change: Tensor | None, _: None) -> Tensor:
        x, weight = ctx.saved_tensors
        changes = [] if x_change is None else [_forward(x_change, weight, ctx.padding)]
        changes += [] if weight_change is None else [_forward(x, weight_change, ctx.padding)]
        return torch.stack(changes).sum(0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs = ctx.needs_input_grad
        if followed():
            return *by_formula(partial(F.conv2d, padding=ctx.padding), (x, weight), needs[:2], grad), None
        dx = dw = None
        if needs[0]:
            borders = tuple(k - 1 - p for k, p in zip(weight.shape[2:], ctx.padding, strict=True))
            dx = _forward(grad, weight.transpose(0, 1).flip(2, 3), borders)
        if needs[1]:
            dw = _weight_gradient(x, grad, ctx.padding)
        return dx, dw, None


def _forward(x: Tensor, weight: Tensor, padding: Size) -> Tensor:
    outputs, inputs, *window = weight.shape
    space = tuple(output_size(x.shape[2:], window, (1, 1), padding))
    tiles = cheapest(len(x), inputs, outputs, space, tuple(window))[1]
    high, wide = (algorithm(n, k, x.dtype) for n, k in zip(tiles.sides, window, strict=True))
    taps = _along(high.from_w, weight.permute(2, 3, 1, 0)).flatten(2)  # (r, k', I·O)
    parts = []
    for some in x.split(_at_once(len(x), tiles, max(inputs, outputs))):
        samples = _along(high.from_x, _overlapping(some, tiles, padding)).flatten(2)  # (r, n', tiles·I)
        rows = []
        for own, kernel in zip(samples, taps, strict=True):  # one frequency along the first axis, which fits a cache
            spectra = (wide.from_x @ own).view(len(wide.from_x), -1, inputs)
            found = torch.bmm(spectra, (wide.from_w @ kernel).view(-1, inputs, outputs))
            rows.append(wide.to_y @ found.flatten(1))  # (m', tiles·O)
        y = (high.to_y @ torch.stack(rows).flatten(1)).view(len(high.to_y), -1, len(some), *tiles.counts, outputs)
        y = y.permute(2, 5, 3, 0, 4, 1).flatten(4).flatten(2, 3)
        parts.append(y[:, :, : space[0], : space[1]])
    return torch.cat(parts)


def _weight_gradient(x: Tensor, grad: Tensor, padding: Size) -> Tensor:
    """(O, I, KH, KW): the kernel's spectrum is a product over tiles, of which only the taps are wanted."""
    inputs, outputs, space = x.shape[1], grad.shape[1], grad.shape[2:]
    window = tuple(output_size(x.shape[2:], space, (1, 1), padding))
    tiles = cheapest(len(x), inputs, outputs, tuple(space), window)[1]
    high, wide = (algorithm(n, k, x.dtype) for n, k in zip(tiles.sides, window, strict=True))
    taps = x.new_zeros(len(high.from_x), window[1], inputs * outputs)
    share = _at_once(len(x), tiles, max(inputs, outputs))
    for some, back in zip(x.split(share), grad.split(share), strict=True):
        samples = _along(high.from_x, _overlapping(some, tiles, padding)).flatten(2)
        slopes = _along(high.to_y.mT, _side_by_side(back, tiles)).flatten(2)  # (r, m', tiles·O)
        for own, slope, kernel in zip(samples, slopes, taps, strict=True):
            spectra = (wide.from_x @ own).view(len(wide.from_x), -1, inputs)
            found = torch.bmm(spectra.mT, (wide.to_y.mT @ slope).view(len(spectra), -1, outputs))
            kernel.addmm_(wide.from_w.mT, found.flatten(1))
    kernel = (high.from_w.mT @ taps.flatten(1)).view(*window, inputs, outputs)
    return kernel.permute(3, 2, 0, 1)


def _overlapping(x: Tensor, tiles: Tiles, padding: Size) -> Tensor:
    """Tiles of an image with zeros around it and behind it, as (n, n', tiles, channels)."""
    whole = [(count - 1) * own + side for side, own, count in zip(*tiles, strict=True)]
    borders = [(p, w - n - p) for p, w, n in zip(padding, whole, x.shape[2:], strict=True)]
    last = F.pad(x.permute(0, 2, 3, 1), (0, 0, *borders[1], *borders[0]))
    last = last.unfold(1, tiles.sides[0], tiles.own[0]).unfold(2, tiles.sides[1], tiles.own[1])
    return last.permute(4, 5, 0, 1, 2, 3).flatten(2, 4)


def _side_by_side(y: Tensor, tiles: Tiles) -> Tensor:
    """The outputs of each tile, with zeros behind the last ones, as (m, m', tiles, channels)."""
    (high, wide), (down, across) = tiles.own, tiles.counts
    last = F.pad(y.permute(0, 2, 3, 1), (0, 0, 0, across * wide - y.shape[3], 0, down * high - y.shape[2]))
    return last.view(len(y), down, high, across, wide, -1).permute(2, 4, 0, 1, 3, 5).flatten(2, 4)


def _along(matrix: Tensor, x: Tensor) -> Tensor:
    """A matrix along the first axis."""
    return (matrix @ x.reshape(len(x), -1)).view(-1, *x.shape[1:])


def _at_once(batch: int, tiles: Tiles, channels: int) -> int:
    """Images whose spectra along one axis stay within a fixed amount of memory, in nearly equal shares."""
    one = _rank(tiles.sides[0]) * tiles.sides[1] * tiles.counts[0] * tiles.counts[1] * channels
    return -(-batch // -(-batch * one // _MOST))
