"""The separable path: where samples have low rank along an axis, sum along the others first.

Scaling keeps a product of splines a product, so its samples on w₁ × w₂ points are X[y₁,y₂] = Σ_r Q[y₁,r] Z[r,y₂] with
as many terms as there are centres along the axis, however wide the window grows.
"""

import torch
from torch import Tensor

from liespline.paths import banded
from liespline.paths.plan import Table

Size = tuple[int, ...]


def project(x_samples: Tensor, q: Tensor) -> Tensor:
    """Z[a,r,…] = Σ_y Q[a,y,r] X[a,y,…]: the samples (A, w, *W', N_x) with their first axis reduced to the rank."""
    return torch.einsum("ayr,ay...->ar...", q, x_samples)


def correlate(fields: Tensor, kernel: Tensor, table: Table, lines: Tensor, stride: Size, padding: Size) -> Tensor:
    """Correlate along all axes but the first, then along that one as a product with banded matrices.

    fields (B, C, R, H, *space), kernel (O, A, C, width, rank, *W'), lines of `toeplitz` -> (B, O, A, *space).
    """
    outputs, rank = kernel.shape[0], kernel.shape[4]
    blocks = kernel.movedim(4, 0).flatten(0, 1).unsqueeze(4)  # (rank·O, A, C, width, 1, *W')
    rest = (0, *padding[1:])
    partial = banded.grouped(fields, blocks, table, (1, *stride[1:]), rest)  # (B, rank·O, A, H, *space)
    partial = partial.view(len(partial), rank, outputs, *partial.shape[2:])
    return torch.einsum("akrh,broah...->boak...", lines.to(partial.dtype), partial)


def toeplitz(q: Tensor, height: int, stride: int, padding: int) -> Tensor:
    """T[a,k,r,h] = Q[a, h − stride·k + padding, r], zero outside the window: (A, H', rank, H)."""
    size = q.shape[1]
    lines = (height + 2 * padding - size) // stride + 1
    offset = torch.arange(height, device=q.device) - stride * torch.arange(lines, device=q.device)[:, None] + padding
    inside = (offset >= 0) & (offset < size)
    taps = q[:, offset.clamp(0, size - 1)] * inside[..., None].to(q.dtype)  # (A, H', H, rank)
    return taps.transpose(2, 3)
