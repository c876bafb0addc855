"""The dense path: sample every block of the kernel, then call one convolution a window size."""

import torch
from torch import Tensor
from torch.nn import functional as F

from liespline.paths import fourier, neighbours, windows

Size = tuple[int, ...]
_CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


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


def outer(x_samples: Tensor, h_samples: Tensor) -> Tensor:
    """Both samples in one matrix (N_x·N_k, A·Y·N_in): x_samples (A, 1, *W, N_x), h_samples (A, 1, N_in, N_k).

    A kernel is then a single product, which takes more multiplications but fewer launches.
    """
    points = x_samples[:, 0].flatten(1, -2)  # (A, Y, N_x)
    return torch.einsum("ayi,abj->ijayb", points, h_samples[:, 0]).flatten(2).flatten(0, 1)


def kernel_at_once(weight: Tensor, samples: Tensor, n_in: int, window: Size) -> Tensor:
    """`kernel` by the matrix of `outer`: a view (O, A, C, N_in, *W) of (O, C, A, *W, N_in)."""
    o, c = weight.shape[:2]
    sampled = (weight.flatten(2).flatten(0, 1) @ samples).view(o, c, -1, *window, n_in)
    return sampled.movedim((2, -1), (1, 3))


def lift_kernel(weight: Tensor, x_samples: Tensor) -> Tensor:
    """Sample the kernel of a lifting: weight (O, C, N_x), x_samples (A, *W, N_x) -> (O, A, C, *W)."""
    return torch.tensordot(weight, x_samples, dims=([-1], [-1])).transpose(1, 2)


def convolve(x: Tensor, sampled: Tensor, sizes: tuple[Size, ...], stride: Size, padding: Size) -> Tensor:
    """Correlate with a sampled kernel, each element in its own window.

    x (B, *inputs, *space), sampled (O, A, *inputs, *W) -> (B, O, A, *space).
    """
    largest = tuple(sampled.shape[sampled.ndim - len(stride) :])
    distinct = sorted(set(sizes))
    if len(distinct) == 1:
        return _convolve(x, sampled, largest, distinct[0], stride, padding)
    members = [[a for a, size in enumerate(sizes) if size == window] for window in distinct]
    parts = [
        _convolve(x, _take(sampled, elements), largest, window, stride, padding)
        for elements, window in zip(members, distinct, strict=True)
    ]
    order = [a for elements in members for a in elements]
    joined = torch.cat(parts, dim=2)
    if order == sorted(order):
        return joined
    return torch.stack([joined.select(2, order.index(a)) for a in range(len(sizes))], dim=2)


def accumulate_dtype(*tensors: Tensor) -> torch.dtype:
    """The dtype kernels are built in: float32, or float64 where any operand is."""
    return torch.float64 if any(t.dtype == torch.float64 for t in tensors) else torch.float32


def _take(sampled: Tensor, elements: list[int]) -> Tensor:
    if elements == list(range(elements[0], elements[-1] + 1)):
        return sampled.narrow(1, elements[0], len(elements))
    return torch.stack([sampled.select(1, a) for a in elements], dim=1)


def _space_first(weight: Tensor, x_samples: Tensor, h_samples: Tensor) -> Tensor:
    # One product over N_x shared by all elements, then one an element over (M, N_k): (A, Y, O, C, N_in).
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


def _convolve(x: Tensor, sampled: Tensor, largest: Size, window: Size, stride: Size, padding: Size) -> Tensor:
    sampled = windows.crop(sampled, sampled.ndim - len(stride), window)
    x, padding = windows.fit(x, largest, window, padding)
    d = len(stride)
    if x.is_cuda and d > 1:
        return neighbours.convolve(x, sampled, stride, padding)
    flat, weight = x.flatten(1, x.ndim - 1 - d), sampled.flatten(2, sampled.ndim - 1 - d).flatten(0, 1).to(x.dtype)
    if not d:
        out = F.linear(flat, weight)
    elif d == 2 and fourier.takes(flat, weight, stride, padding):
        out = fourier.correlate(flat, weight, padding)
    else:
        out = _CONVOLUTIONS[d](flat, weight, None, stride, padding)
    return out.unflatten(1, sampled.shape[:2])
