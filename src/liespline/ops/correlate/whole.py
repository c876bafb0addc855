"""The whole kernel: sample every block of it, then call one convolution for each size of window."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.weak import WeakTensorKeyDictionary

from ..._check import Size
from ..path import Choice
from ..plan import Plan, crop, distinct, kept
from .reference import kernel

_MOST_SAMPLES = {"cuda": 4_000_000, "cpu": 50_000}  # of a kept matrix; a CPU's caches do not hold more


def outer(x_samples: Tensor, h_samples: Tensor, channels_last: bool) -> Tensor:
    """Both samples in one matrix: x_samples (A, 1, *W, N_x), h_samples (A, 1, N_in, N_k) -> (N_x·N_k, A·N_in·Y).

    A kernel is then a single product, which takes more multiplications but fewer launches.
    """
    points = x_samples.reshape(len(x_samples), -1, x_samples.shape[-1])  # (A, Y, N_x)
    order = "ijayb" if channels_last else "ijaby"
    return torch.einsum(f"ayi,abj->{order}", points, h_samples[:, 0]).flatten(2).flatten(0, 1)


def kept_kernel(
    weight: Tensor, x_samples: Tensor, h_samples: Tensor, plan: Plan, key: Hashable, channels_last: bool
) -> Tensor:
    """`kernel` of samples that are fixed: by a product with `outer` that the plan keeps, where it is not too large.

    On a CPU a single spline on H is left as it is: there is little to save, and stored networks give what they gave.
    """
    samples = x_samples.numel() * h_samples.numel() // h_samples.shape[0]
    if samples > _MOST_SAMPLES.get(weight.device.type, 0) or (weight.shape[3] == 1 and not weight.is_cuda):
        sample = partial(kernel, weight, x_samples, h_samples, channels_last=channels_last)
    else:
        matrix = kept(plan, ("outer", key, weight.dtype), lambda: outer(x_samples, h_samples, channels_last))
        sample = partial(kernel_at_once, weight, matrix, h_samples.shape[2], x_samples.shape[2:-1], channels_last)
    return evaluated(weight, plan, key, sample)


def kernel_at_once(weight: Tensor, matrix: Tensor, n_in: int, window: Size, channels_last: bool) -> Tensor:
    """`kernel` by the matrix of `outer`: a view (O, A, C, N_in, *W) of (O, C, A, *W, N_in) or (O, C, A, N_in, *W)."""
    o, c = weight.shape[:2]
    sampled = weight.reshape(o * c, -1) @ matrix
    if channels_last:
        return sampled.view(o, c, -1, *window, n_in).movedim((2, -1), (1, 3))
    return sampled.view(o, c, -1, n_in, *window).transpose(1, 2)


def convolve(
    x: Tensor, sampled: Tensor, sizes: tuple[Size, ...], choice: Choice, stride: Size, padding: Size
) -> Tensor:
    """Correlate with a sampled kernel, each element in its own window: a path for each size.

    x (B, *inputs, *space), sampled (O, A, *inputs, *W) -> (B, O, A, *space), in the dtype of x.
    """
    d, strided = len(stride), max(stride, default=1) > 1
    largest = tuple(sampled.shape[sampled.ndim - d :])
    if len(choice.paths) == 1 and sizes[0] == largest:
        if strided:
            x, padding = _around(x, padding, largest)
        return choice.paths[0].correlate(x, sampled, stride, padding, choice.order)
    windows = distinct(sizes)
    members = [[a for a, size in enumerate(sizes) if size == window] for window in windows]
    parts = []
    for elements, window, path in zip(members, windows, choice.paths, strict=True):
        own = crop(_take(sampled, elements), sampled.ndim - d, window)
        near, border = fit(x, largest, window, padding)
        if strided:
            near, border = _around(near, border, window)
        parts.append(path.correlate(near, own, stride, border, choice.order))
    if len(parts) == 1:
        return parts[0]
    places = [a for elements in members for a in elements]
    joined = torch.cat(parts, dim=2)
    if places == sorted(places):
        return joined
    return torch.stack([joined.select(2, places.index(a)) for a in range(len(sizes))], dim=2)


def fit(x: Tensor, largest: Size, window: Size, padding: Size) -> tuple[Tensor, Size]:
    """Return the input and zero padding that leave a smaller window, centred in the largest, where it was."""
    borders = [p - (outer - inner) // 2 for p, outer, inner in zip(padding, largest, window, strict=True)]
    for axis, border in enumerate(borders, start=x.ndim - len(borders)):
        if border < 0:
            x = x.narrow(axis, -border, x.shape[axis] + 2 * border)
    return x, tuple(max(border, 0) for border in borders)


def _around(x: Tensor, padding: Size, window: Size) -> tuple[Tensor, Size]:
    """Return a volume with its zeros around it, and no padding left, where torch would go wrong.

    On a CPU the gradient by the kernel of a strided convolution reads beyond volumes no larger than the window:
    garbage in torch 2.13 (oneDNN), or the end of the process.
    """
    space = x.shape[x.ndim - len(window) :]
    reached = len(window) == 3 and any(n <= w for n, w in zip(space, window, strict=True))
    if x.device.type != "cpu" or not reached:
        return x, padding
    sides = [p for border in reversed(padding) for p in (border, border)]
    return F.pad(x, sides), (0,) * len(window)


def _take(sampled: Tensor, elements: list[int]) -> Tensor:
    if len(elements) == sampled.shape[1]:  # all, in order
        return sampled
    if elements == list(range(elements[0], elements[-1] + 1)):
        return sampled.narrow(1, elements[0], len(elements))
    return torch.stack([sampled.select(1, a) for a in elements], dim=1)


# ---- kernels kept in evaluation: sampling them takes a third of the time of one image on a CPU ----

_MOST_KEPT = 1 << 22  # numbers of a kernel that is kept, 16 MB
_WAYS = 8  # in which a layer may be computed, for images of other sizes


class _Kernels(NamedTuple):
    """Kernels sampled from a weight as it was; from its values, since not all that changes them tells its version."""

    plan: Plan
    weight: Tensor
    found: dict[Hashable, Tensor]


_evaluated = WeakTensorKeyDictionary()  # by the weight itself, with which they go


def evaluated(weight: Tensor, plan: Plan, key: Hashable, sample: Callable[[], Tensor]) -> Tensor:
    """Return a kernel of this weight and fixed samples: under no_grad the one of before, if nothing changed since.

    Not for what a tracer or a transform follows.
    """
    if torch.is_grad_enabled() or weight.is_cuda:
        if _evaluated:
            _evaluated.pop(weight, None)  # memory that training has better uses for
        return sample()
    mine: _Kernels | None = _evaluated.get(weight)
    if mine is None or mine.plan is not plan or not _same(mine.weight, weight):
        mine = _Kernels(plan, weight.detach().clone(), {})
        _evaluated[weight] = mine
    found = mine.found.get(key)
    if found is None:
        found = sample()
        if found.numel() <= _MOST_KEPT and len(mine.found) < _WAYS:
            mine.found[key] = found
    return found


def _same(before: Tensor, now: Tensor) -> bool:
    return before.dtype == now.dtype and torch.equal(before, now)  # which compares values of two dtypes, too
