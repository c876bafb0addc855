"""The definition in plain torch: the kernel of eq. BSplinesOnG, and its correlation as one convolution."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..._torch import traced, transformed
from ..layout import Order
from ..path import Path, Question, lanes

CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_PLANES = 1.25  # of the cost of a line whose channels lie innermost, as only those of images do for oneDNN


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


def correlate(x: Tensor, kernel: Tensor, stride: Size, padding: Size, order: Order = Order.PLANES) -> Tensor:
    """Correlate x (B, *inputs, *space) with kernel (O, A, *inputs, *W) -> (B, O, A, *space), layouts left to torch."""
    d, shape = len(stride), kernel.shape
    outputs, elements = shape[:2]
    flat = x.flatten(1, -1 - d)
    weight = kernel.reshape(outputs * elements, flat.shape[1], *shape[kernel.ndim - d :])
    weight = weight if weight.dtype == x.dtype else weight.to(x.dtype)
    if d == 3:
        out = volumes(flat, weight, stride, padding)
    else:
        out = CONVOLUTIONS[d](flat, weight, None, stride, padding) if d else F.linear(flat, weight)
    batch, _, *space = out.shape
    return out.view(batch, outputs, elements, *space)


def grouped(x: Tensor, kernel: Tensor, groups: int, stride: Size, padding: Size) -> Tensor:
    """Correlate channel groups that do not see each other, as one grouped convolution.

    x (B, C, *inputs, *space), kernel (O, A, C/groups, *inputs, *W) -> (B, O, A, *space).
    """
    shape, d = kernel.shape[:2], len(stride)
    rows = kernel.flatten(0, 1).flatten(1, kernel.ndim - 2 - d)  # (O·A, C/groups·inputs, *W)
    flat = x.flatten(1, x.ndim - 1 - d)
    if d == 0:
        return CONVOLUTIONS[1](flat.unsqueeze(-1), rows.unsqueeze(-1), groups=groups).squeeze(-1).unflatten(1, shape)
    return CONVOLUTIONS[d](flat, rows, None, stride, padding, groups=groups).unflatten(1, shape)


def price(q: Question) -> float:
    """One convolution by the vendor's library."""
    inputs, outputs = math.prod(q.inputs), q.elements * q.outputs
    times = lanes(outputs) * (lanes(inputs) if q.cuda else inputs) * math.prod(q.window)  # cuDNN's are padded
    return times * (_PLANES if len(q.window) == 1 and not q.cuda else doubled(q, inputs, q.window))


PATH = Path("plain", price, correlate)


# ---- single volumes on a CPU ----


def volumes(x: Tensor, weight: Tensor, stride: Size, padding: Size, groups: int = 1) -> Tensor:
    """`F.conv3d`; beside a single small volume an empty one is convolved, which makes torch take oneDNN."""
    alone = groups == 1 and not x.is_cuda and x.dtype == torch.float32 and not (traced(x) or transformed())
    if alone and left_to_torch(len(x), x.shape[1], tuple(x.shape[2:]), tuple(weight.shape[2:])):
        both = F.pad(x, (0, 0) * 4 + (0, 1))
        return F.conv3d(both, weight, None, stride, padding)[:1]
    return F.conv3d(x, weight, None, stride, padding, groups=groups)


def left_to_torch(batch: int, inputs: int, space: Size, window: Size) -> bool:
    """Whether torch does not give volumes to oneDNN on a CPU but unfolds them itself, at a tenth of the speed.

    So it is with one sample and a window of at most 3 along one of the last axes, by the count of channels and lines.
    """
    return batch == 1 and min(window[1:]) <= 3 and inputs * space[0] * space[1] <= 20480


def doubled(q: Question, inputs: int, window: Size) -> int:
    """How many volumes are convolved for each of the input: two, where a single one goes with an empty one."""
    one = len(window) == 3 and not q.cuda and q.dtype == torch.float32
    return 2 if one and left_to_torch(q.batch, inputs, q.space, window) else 1


# ---- the two orders of the sums ----


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
