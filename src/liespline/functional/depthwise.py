"""A correlation in space alone, separately for each channel and element of H."""

from __future__ import annotations

from torch import Tensor

from .._check import Size
from .._torch import full_precision, transformed
from ..ops import choose
from ..ops.correlate.hopper.operators import innermost
from ..ops.depthwise import hopper as fast
from .border import Padding
from .correlation import add_bias, grouped, pad


def _by_layout(x: Tensor, kernel: Tensor, stride: Size, padding: Size) -> Tensor:
    """Filter (B, C, A, *space) by (C, A, *W), fields in the order in which they lie in memory."""
    if innermost(x):
        return _by_layout(x.transpose(1, 2), kernel.transpose(0, 1), stride, padding).transpose(1, 2)
    fields, own = x.flatten(1, 2), kernel.flatten(0, 1)
    if fast.takes(fields, tuple(own.shape[1:]), stride, padding) and not transformed():
        return fast.convolve(fields, own, padding).unflatten(1, kernel.shape[:2])
    # Every field is a group of its own: one channel in, one out.
    out = grouped(fields, own.unsqueeze(1).unsqueeze(1), len(own), stride, padding)
    return out.squeeze(2).unflatten(1, kernel.shape[:2])


def depthwise_kernel(weight: Tensor, x_samples: Tensor) -> Tensor:
    """Return k(h⁻¹y)/|det h| by channel and element: weight `(C, N_x)`, x_samples `(A, *W, N_x)` → `(C, A, *W)`."""
    with full_precision(x_samples.device):
        kernel = weight.to(x_samples.dtype) @ x_samples.flatten(0, -2).T
        return kernel.unflatten(1, x_samples.shape[:-1]).to(weight.dtype)


def depthwise(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    bias: Tensor | None = None,
    *,
    stride: Size,
    padding: Padding,
    padding_mode: str = "zeros",
) -> Tensor:
    """Return out(x, h) = 1/|det h| Σ_y k(h⁻¹(y − x)) F(y, h): the group correlation with a kernel that sees h̃ = h only.

    x `(B, C, A, *space)`, weight `(C, N_x)`, x_samples `(A, *W, N_x)` → `(B, C, A, *space)`; padding before and after
    each axis, about the window W.
    """
    kernel = depthwise_kernel(weight, x_samples)
    x, zeros = pad(x, padding, padding_mode)
    out = _by_layout(x.to(choose.compute_dtype(x)) if x.is_cuda else x, kernel, stride, zeros)
    return add_bias(out, bias)
