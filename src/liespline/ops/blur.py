"""Blur once: where all kernels sum one spline at other samples, the input meets it once, and then the centres alone.

Where h maps the lattice of centres to itself and no spline is cut off, K(h⁻¹y) = B ⋆ Σ_i c_i δ(y − h x_i): five taps
along an axis are three and three, and those of B are the same for all channels and elements. A value that is not finite
spreads over the lines through it, where they are blurred by products.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from .._check import Size
from .layout import Order, fields_first, fields_last, output_size, over_space
from .path import Question, changed, move

_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


@dataclass(frozen=True, eq=False)
class Blur:
    """Samples in space X[a,y,i] = Σ_z spline[y − z] centres[a,z,i]."""

    spline: Tensor  # (*b,)
    centres: Tensor  # (A, 1, *window, N_x) one or zero
    window: Size


def blur_of(samples: Tensor) -> Blur | None:
    """Return how samples (A, *W, N_x) in float64 are one product of splines at other places; None if they are not."""
    taps = samples.movedim(-1, 1).flatten(0, 1)  # (A·N_x, *W)
    tolerance = 64 * torch.finfo(taps.dtype).eps * float(taps.abs().max())
    used = taps.abs() > tolerance
    ends = [
        _ends(used.movedim(axis, 1).reshape(len(taps), used.shape[axis], -1).any(2)) for axis in range(1, taps.ndim)
    ]
    sizes = [last - first + 1 for first, last in ends]
    if any((size != size[0]).any() or size[0] < 1 for size in sizes) or all(size[0] == 1 for size in sizes):
        return None
    spline = taps[0]
    for axis, ((first, _), size) in enumerate(zip(ends, sizes, strict=True)):
        spline = spline.narrow(axis, int(first[0]), int(size[0]))
    window = tuple(output_size(taps.shape[1:], spline.shape, (1,) * spline.ndim, (0,) * spline.ndim))
    centres = taps.new_zeros(len(taps), *window)
    centres[(torch.arange(len(taps)), *(first for first, _ in ends))] = 1
    product = torch.ones((), dtype=taps.dtype)
    for line in lines(spline):
        product = product[..., None] * line
    flipped, borders = product.flip(*range(spline.ndim)), [size - 1 for size in spline.shape]
    again = _CONVOLUTIONS[spline.ndim](centres.unsqueeze(1), flipped[None, None], padding=borders).squeeze(1)
    if float((again - taps).abs().max()) > tolerance:
        return None
    centres = centres.float().unflatten(0, (len(samples), 1, -1)).movedim(2, -1).contiguous()  # exact in float32
    return Blur(spline.clone(), centres, window)


def _ends(used: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and the last place in use of each line (S, W); the last before the first where none is."""
    first = used.int().argmax(1)
    return first, torch.where(used.any(1), used.shape[1] - 1 - used.flip(1).int().argmax(1), first - 1)


def lines(spline: Tensor) -> list[Tensor]:
    """Return the factors of a product of splines along each axis."""
    total = spline.sum()
    sums = [spline.movedim(axis, 0).reshape(size, -1).sum(1) for axis, size in enumerate(spline.shape)]
    return [sums[0], *(line / total for line in sums[1:])]


def price(q: Question) -> float:
    """What blurring all fields costs: they pass through memory, once or along each axis, and each pass is launched."""
    passes = 1 if _convolved(q.cuda, len(q.space)) else len(q.space)
    launch = 0.0 if q.traced else (3e9 if q.cuda else 1e7) / max(q.batch * math.prod(q.size), 1)
    return passes * (math.prod(q.inputs) * math.prod(q.stride) * move(q) + launch)


def question(q: Question, blur: Blur) -> Question:
    """Return what is asked of the blurred input."""
    d = len(q.stride)
    space = tuple(output_size(q.space, blur.spline.shape, (1,) * d, q.padding))
    return changed(q, space=space, sizes=(blur.window,) * len(q.sizes), padding=(0,) * d)


def factors(x: Tensor, spline: Tensor, padding: Size) -> list[Tensor]:
    """Return what `blurred` multiplies x by: the spline itself, or a banded matrix (n', n) for each axis."""
    if _convolved(x.is_cuda, spline.ndim):
        return [spline.to(x.dtype)]
    sizes = x.shape[x.ndim - spline.ndim :]
    triples = zip(lines(spline), sizes, padding, strict=True)
    return [toeplitz(line[None, :, None], n, 1, border)[0, :, 0].to(x.dtype) for line, n, border in triples]


def blurred(x: Tensor, by: list[Tensor], padding: Size, order: Order) -> Tensor:
    """Correlate each field of (B, *inputs, *space) with a spline, zeros around it, and keep the order in memory."""
    d = len(padding)
    if _convolved(x.is_cuda, d):
        (spline,) = by

        def convolve(images: Tensor) -> Tensor:
            fields = images.shape[1]
            return _CONVOLUTIONS[d](images, spline.expand(fields, 1, *spline.shape), padding=padding, groups=fields)

        return convolve(x) if x.ndim == 2 + d else over_space(x, convolve)
    if order is Order.FIELDS and x.ndim > 2 + d:
        return fields_first(_along(fields_last(x), by, 1))
    if order is not Order.PLANES:
        return _along(x.movedim(1, -1), by, x.ndim - d - 1).movedim(-1, 1)
    return all_inside(x, by) if x.is_cuda and x.ndim > 2 + d else _along(x, by, x.ndim - d)


def all_inside(x: Tensor, by: list[Tensor]) -> Tensor:
    """Correlate with C and N_h innermost, as cuDNN wants to read them."""
    last = x.flatten(1, 2).movedim(1, -1).contiguous()
    return _along(last, by, 1).movedim(-1, 1).unflatten(1, x.shape[1:3])


def _convolved(cuda: bool, d: int) -> bool:
    """Whether one convolution of each channel is faster than a product along each axis."""
    return not cuda and d < 3


def _along(x: Tensor, matrices: list[Tensor], first: int) -> Tensor:
    """Multiply along the axes from `first` on."""
    for axis, matrix in enumerate(matrices, start=first):
        if axis == x.ndim - 1:
            x = F.linear(x, matrix)
            continue
        flat = x.reshape(math.prod(x.shape[:axis]), x.shape[axis], -1)
        x = torch.bmm(matrix.expand(len(flat), *matrix.shape), flat).view(*x.shape[:axis], -1, *x.shape[axis + 1 :])
    return x


def toeplitz(q: Tensor, height: int, stride: int, padding: int) -> Tensor:
    """T[a,k,r,h] = Q[a, h − stride·k + padding, r], zero outside the window: (A, H', rank, H)."""
    size = q.shape[1]
    (rows,) = output_size((height,), (size,), (stride,), (padding,))
    offset = torch.arange(height, device=q.device) - stride * torch.arange(rows, device=q.device)[:, None] + padding
    inside = (offset >= 0) & (offset < size)
    taps = q[:, offset.clamp(0, size - 1)] * inside[..., None].to(q.dtype)  # (A, H', H, rank)
    return taps.transpose(2, 3)
