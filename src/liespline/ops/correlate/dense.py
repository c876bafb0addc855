"""The whole kernel: sample every block of it, then call one convolution for each size of window."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..plan import Plan, crop, distinct, kept
from . import cudnn, fourier
from .hopper import operators as hopper

_MOST_SAMPLES = 4_000_000  # of a kept matrix, 16 MB


def kernel(weight: Tensor, x_samples: Tensor, h_samples: Tensor, *, channels_last: bool = False) -> Tensor:
    """Sample the whole kernel of a group correlation.

    K[o,a,c,b,y] = Σ_ijm weight[o,c,i,j] x_samples[a,m,y,i] h_samples[a,m,b,j]  (eq. BSplinesOnG)

    weight (O, C, N_x, N_k), x_samples (A, M, *W, N_x), h_samples (A, M, N_in, N_k) -> (O, A, C, N_in, *W), in memory
    either so or with (C, N_in) innermost.
    """
    window = x_samples.shape[2:-1]
    x_samples = x_samples.reshape(*x_samples.shape[:2], -1, x_samples.shape[-1])  # (A, M, Y, N_x)
    points, n_x = x_samples.shape[2:]
    n_in, n_k = h_samples.shape[2:]
    space_first = points * n_k * (n_x + n_in) <= n_in * n_x * (n_k + points)
    contract = _space_first if space_first else _group_first
    sampled = contract(weight, x_samples, h_samples)  # (A, Y, O, C, N_in)
    if channels_last:
        sampled = sampled.permute(2, 0, 1, 3, 4).contiguous().movedim(2, -1)
    else:
        sampled = sampled.permute(2, 0, 3, 4, 1).contiguous()
    return sampled.view((*sampled.shape[:4], *window))


def lift_kernel(weight: Tensor, x_samples: Tensor) -> Tensor:
    """Sample the kernel of a lifting: weight (O, C, N_x), x_samples (A, *W, N_x) -> (O, A, C, *W)."""
    return torch.tensordot(weight, x_samples, dims=([-1], [-1])).transpose(1, 2)


def outer(x_samples: Tensor, h_samples: Tensor) -> Tensor:
    """Both samples in one matrix (N_x·N_k, A·Y·N_in): x_samples (A, 1, *W, N_x), h_samples (A, 1, N_in, N_k).

    A kernel is then a single product, which takes more multiplications but fewer launches.
    """
    points = x_samples.reshape(len(x_samples), -1, x_samples.shape[-1])  # (A, Y, N_x)
    return torch.einsum("ayi,abj->ijayb", points, h_samples[:, 0]).flatten(2).flatten(0, 1)


def kept_kernel(weight: Tensor, x_samples: Tensor, h_samples: Tensor, plan: Plan, key: Hashable) -> Tensor:
    """`kernel` of samples that are fixed, by a product with `outer` that the plan keeps, unless that is too large."""
    if x_samples.numel() * h_samples[0].numel() > _MOST_SAMPLES:
        return kernel(weight, x_samples, h_samples, channels_last=True)
    matrix = kept(plan, ("outer", key, weight.dtype), lambda: outer(x_samples, h_samples))
    return kernel_at_once(weight, matrix, h_samples.shape[2], tuple(x_samples.shape[2:-1]))


def kernel_at_once(weight: Tensor, samples: Tensor, n_in: int, window: Size) -> Tensor:
    """`kernel` by the matrix of `outer`: a view (O, A, C, N_in, *W) of (O, C, A, *W, N_in)."""
    o, c = weight.shape[:2]
    sampled = (weight.flatten(2).flatten(0, 1) @ samples).view(o, c, -1, *window, n_in)
    return sampled.movedim((2, -1), (1, 3))


def convolve(
    x: Tensor, sampled: Tensor, sizes: tuple[Size, ...], methods: Sequence[str], stride: Size, padding: Size
) -> Tensor:
    """Correlate with a sampled kernel, each element in its own window: a method for each size.

    x (B, *inputs, *space), sampled (O, A, *inputs, *W) -> (B, O, A, *space), in the dtype of x.
    """
    d = len(stride)
    largest = tuple(sampled.shape[sampled.ndim - d :])
    windows = distinct(sizes)
    members = [[a for a, size in enumerate(sizes) if size == window] for window in windows]
    parts = []
    for elements, window, method in zip(members, windows, methods, strict=True):
        own = crop(_take(sampled, elements), sampled.ndim - d, window)
        parts.append(_one(*fit(x, largest, window, padding), own, stride, method))
    if len(parts) == 1:
        return parts[0]
    order = [a for elements in members for a in elements]
    joined = torch.cat(parts, dim=2)
    if order == sorted(order):
        return joined
    return torch.stack([joined.select(2, order.index(a)) for a in range(len(sizes))], dim=2)


def fit(x: Tensor, largest: Size, window: Size, padding: Size) -> tuple[Tensor, Size]:
    """Return the input and zero padding that leave a smaller window, centred in the largest, where it was."""
    borders = [p - (outer - inner) // 2 for p, outer, inner in zip(padding, largest, window, strict=True)]
    for axis, border in enumerate(borders, start=x.ndim - len(borders)):
        if border < 0:
            x = x.narrow(axis, -border, x.shape[axis] + 2 * border)
    return x, tuple(max(border, 0) for border in borders)


def _one(x: Tensor, padding: Size, sampled: Tensor, stride: Size, method: str) -> Tensor:
    if method == "fourier":
        weight = sampled.flatten(2, sampled.ndim - 3).flatten(0, 1).to(x.dtype)
        return fourier.correlate(x.flatten(1, x.ndim - 3), weight, padding).unflatten(1, sampled.shape[:2])
    if method == "plain":
        return cudnn.plain(x, sampled, stride, padding)
    d = len(stride)
    convolve = _product if _is_product(x, sampled, stride, padding) else cudnn.convolve
    if not _channels_innermost(x, sampled, d):
        return convolve(x, sampled, stride, padding)
    kernel = sampled.transpose(0, 1)
    if x.ndim > 2 + d:
        x, kernel = x.transpose(1, 2), kernel.transpose(2, 3)
    return convolve(x, kernel, stride, padding).transpose(1, 2)


def _is_product(x: Tensor, sampled: Tensor, stride: Size, padding: Size) -> bool:
    """Whether the window is one sample, and channels need no padding: cuBLAS is faster than a convolution."""
    d = len(stride)
    counts = math.prod(x.shape[1 : x.ndim - d]), sampled.shape[0] * sampled.shape[1]
    one = math.prod(sampled.shape[sampled.ndim - d :]) == max(stride) == 1 and not any(padding)
    return one and not any(count % 8 for count in counts)


def _product(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    d, weight = len(stride), kernel.flatten(0, 1).flatten(1).to(x.dtype)
    out = F.linear(x.flatten(1, x.ndim - 1 - d).movedim(1, -1), weight)
    return out.movedim(-1, 1).unflatten(1, kernel.shape[:2])


def _channels_innermost(x: Tensor, sampled: Tensor, d: int) -> bool:
    """Whether the result has the channels of an element together in memory: as x has, or, lifted, as the next wants."""
    if x.ndim > 2 + d:
        return x.stride(1) == 1 and x.shape[2] > 1
    outputs, elements = sampled.shape[:2]
    return elements > 1 and outputs * elements % 8 == 0 and hopper.available(x.device, x.dtype)


def _take(sampled: Tensor, elements: list[int]) -> Tensor:
    if len(elements) == sampled.shape[1]:  # all, in order
        return sampled
    if elements == list(range(elements[0], elements[-1] + 1)):
        return sampled.narrow(1, elements[0], len(elements))
    return torch.stack([sampled.select(1, a) for a in elements], dim=1)


def _space_first(weight: Tensor, x_samples: Tensor, h_samples: Tensor) -> Tensor:
    # One product over N_x shared by all elements, then one for each element over (M, N_k): (A, Y, O, C, N_in).
    a, m, y, _ = x_samples.shape
    o, c, _, n_k = weight.shape
    planes = torch.tensordot(x_samples, weight, dims=([3], [2]))  # (A, M, Y, O, C, N_k)
    planes = planes.movedim(1, -2).reshape(a, y * o * c, m * n_k)
    taps = h_samples.movedim(2, -1).reshape(a, m * n_k, -1)
    return torch.bmm(planes, taps).view(a, y, o, c, -1)


def _group_first(weight: Tensor, x_samples: Tensor, h_samples: Tensor) -> Tensor:
    # The same sum the other way round, cheaper where N_k is not small: (A, Y, O, C, N_in).
    a, m, y, n_x = x_samples.shape
    o, c, _, n_k = weight.shape
    coefficients = weight.movedim(2, 0).reshape(1, n_x * o * c, n_k).expand(a * m, -1, -1)
    taps = torch.bmm(coefficients, h_samples.flatten(0, 1).mT).view(a, m * n_x, -1)
    points = x_samples.transpose(1, 2).reshape(a, y, m * n_x)
    return torch.bmm(points, taps).view(a, y, o, c, -1)
