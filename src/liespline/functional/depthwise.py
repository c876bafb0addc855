"""A correlation in space alone, separately for each channel and element of H."""

from __future__ import annotations

import torch
from torch import Tensor

from ..sizes import Size
from .correlation import Padding, grouped, pad


def depthwise_kernel(weight: Tensor, x_samples: Tensor) -> Tensor:
    """Return k(h⁻¹y)/|det h| by channel and element: weight `(C, N_x)`, x_samples `(A, *W, N_x)` → `(C, A, *W)`."""
    with torch.autocast(x_samples.device.type, enabled=False):
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
    # Every field is a group of its own: one channel in, one out.
    fields, own = x.flatten(1, 2), kernel.flatten(0, 1).unsqueeze(1).unsqueeze(1)
    out = grouped(fields, own, len(own), stride, zeros).squeeze(2).unflatten(1, kernel.shape[:2])
    return out if bias is None else out + bias.to(out.dtype).reshape(-1, *(1,) * (out.ndim - 2))
