"""A correlation in space alone, separately for each channel and element of H."""

from __future__ import annotations

from torch import Tensor

from .._check import Size
from .._torch import full_precision
from ..ops import choose
from ..ops.depthwise import reference
from ..ops.layout import Order, order_of
from .border import Padding
from .correlation import add_bias, pad


def depthwise_kernel(weight: Tensor, x_samples: Tensor) -> Tensor:
    """Return k(h⁻¹y)/|det h| by channel and element: weight `(C, N_x)`, x_samples `(A, *W, N_x)` → `(C, A, *W)`."""
    with full_precision(x_samples.device):
        return reference.kernel(weight.to(x_samples.dtype), x_samples).to(weight.dtype)


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
    x = x.to(choose.compute_dtype(x)) if x.is_cuda else x
    together = order_of(x) is Order.FIELDS
    if together:  # fields one after the other as they lie
        x, kernel = x.transpose(1, 2), kernel.transpose(0, 1)
    path = choose.depthwise(x, tuple(kernel.shape[2:]), stride, zeros)
    out = path.correlate(x.flatten(1, 2), kernel.flatten(0, 1), stride, zeros)
    out = out.view(out.shape[0], *kernel.shape[:2], *out.shape[2:])
    return add_bias(out.transpose(1, 2) if together else out, bias)
