"""Few blocks instead of the whole kernel: each output group is correlated in space with the fields it reads.

The separable form sums along all axes of space but the first, then along that one: scaling keeps a product of splines a
product, so samples on w₁ × w₂ points are X[y₁,y₂] = Σ_r Q[y₁,r] Z[r,y₂] with as many terms as there are centres along
the axis, however wide the window grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from ..._check import Size
from ..plan import Part, Plan, Table, crop, kept
from . import cudnn, dense, triton
from .hopper import operators as hopper

_NEAR = 768  # channels a convolution steps over from sample to sample before a CPU's caches lose track
_WIDE = 14 * 14  # samples in a window beyond which oneDNN has no fast channels-last convolution


def correlate(
    x: Tensor, weight: Tensor, x_samples: Tensor, h_samples: Tensor, *,
    plan: Plan, methods: Sequence[str], group: int, stride: Size, padding: Size, keep: bool,
) -> Tensor:  # fmt: skip
    """Sum over the fields that count: out_a = Σ_f K[a,f] ⋆ field_f, cost A·N_k rather than A·N_in.

    x (B, C, N_in, *space), weight (O, C, N_x, N_k), x_samples (A, 1, *W, N_x), h_samples (A, 1, N_in, N_k)
    -> (B, O, A, *space). A method for each part of the plan; `group` elements share the union of their fields; `keep`
    what is made of the samples for the next time.
    """
    fields = x
    if plan.rows is not None:
        wide = x.shape[1] if hopper.innermost(x) else 0
        make = partial(_mixer, h_samples, plan.rows, wide, x.dtype)
        mixer = kept(plan, ("rows", wide, x.dtype), make) if keep else make()
        fields = _mix(x, mixer)  # (B, C, R, *space)
    parts = []
    for part, method in zip(plan.parts, methods, strict=True):
        table = part.tables[group - 1]
        near, border = dense.fit(fields, tuple(x_samples.shape[2:-1]), part.window, padding)
        blocks = _blocks(weight, x_samples, h_samples, plan, part, group, method, keep)
        if method == "hopper":
            parts.append(hopper.gathered(near, blocks, table.lines, border))
        elif method == "triton":
            parts.append(triton.gathered(near, blocks.to(x.dtype), table, stride, border))
        elif method == "separable":
            assert part.basis is not None
            make = partial(toeplitz, part.basis, near.shape[3], stride[0], border[0])
            lines = kept(plan, (part, near.shape[3], stride[0], border[0]), make) if keep else make()
            parts.append(separable(near, blocks, table, lines, stride, border))
        else:
            parts.append(grouped(near, blocks, table, stride, border))
    out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
    return out if plan.order is None else out.index_select(2, plan.order)


def grouped(fields: Tensor, kernel: Tensor, table: Table, stride: Size, padding: Size) -> Tensor:
    """Correlate gathered fields by grouped convolutions, channels last.

    out[:,o,g·G+e] = Σ_fc kernel[o,g·G+e,c,f] ⋆ fields[:,c,table.fields[g,f]], with G = A / groups

    fields (B, C, R, *space), kernel (O, A, C, width, *W) -> (B, O, A, *space).
    """
    groups = len(table.fields)
    if fields.is_cuda and groups == 1 and len(stride) > 1:
        return cudnn.convolve(picked(fields, table), kernel, stride, padding)
    kernel = kernel.to(fields.dtype)
    blocks = kernel.permute(1, 0, *range(4, kernel.ndim), 3, 2)  # (A, O, *W, width, C)
    blocks = blocks.flatten(-2).flatten(0, 1).movedim(-1, 1)  # (A·O, width·C, *W)
    outputs = len(blocks) // groups
    last = fields.movedim((2, 1), (-2, -1))  # (B, *space, R, C)
    at_once = _at_once(fields, kernel, groups)
    parts = []
    for first in range(0, groups, at_once):
        lines = table.fields[first : first + at_once]
        taken = last.index_select(-2, lines.flatten()).flatten(-2).movedim(-1, 1)
        some = blocks[first * outputs : (first + len(lines)) * outputs]
        parts.append(_convolve(taken, some, len(lines), stride, padding))
    out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
    return out.view(out.shape[0], kernel.shape[1], kernel.shape[0], *out.shape[2:]).transpose(1, 2)


def separable(fields: Tensor, kernel: Tensor, table: Table, lines: Tensor, stride: Size, padding: Size) -> Tensor:
    """Correlate along all axes but the first, then along that one as a product with banded matrices.

    fields (B, C, R, H, *space), kernel (O, A, C, width, rank, *W'), lines of `toeplitz` -> (B, O, A, *space).
    """
    outputs, rank = kernel.shape[0], kernel.shape[4]
    blocks = kernel.movedim(4, 0).flatten(0, 1).unsqueeze(4)  # (rank·O, A, C, width, 1, *W')
    rest = (0, *padding[1:])
    sums = grouped(fields, blocks, table, (1, *stride[1:]), rest)  # (B, rank·O, A, H, *space)
    sums = sums.view(sums.shape[0], rank, outputs, *sums.shape[2:])
    return torch.einsum("akrh,broah...->boak...", lines.to(sums.dtype), sums)


def toeplitz(q: Tensor, height: int, stride: int, padding: int) -> Tensor:
    """T[a,k,r,h] = Q[a, h − stride·k + padding, r], zero outside the window: (A, H', rank, H)."""
    size = q.shape[1]
    lines = (height + 2 * padding - size) // stride + 1
    offset = torch.arange(height, device=q.device) - stride * torch.arange(lines, device=q.device)[:, None] + padding
    inside = (offset >= 0) & (offset < size)
    taps = q[:, offset.clamp(0, size - 1)] * inside[..., None].to(q.dtype)  # (A, H', H, rank)
    return taps.transpose(2, 3)


def picked(fields: Tensor, table: Table) -> Tensor:
    """Return the fields that a single group reads: a view where they are neighbours."""
    if table.start is None:
        return fields.index_select(2, table.fields[0])
    return fields.narrow(2, table.start, table.fields.shape[1])


def _blocks(
    weight: Tensor, x_samples: Tensor, h_samples: Tensor, plan: Plan, part: Part, group: int, method: str, keep: bool
) -> Tensor:
    """Return the kernel's blocks (O, A_p, C, width, *window), the first axis of the window reduced if separable."""
    make = partial(_of_part, x_samples, h_samples, plan, part, group, method == "separable")
    key = part, group, method
    samples = kept(plan, (*key, weight.dtype), make) if keep else make()
    if keep and method != "triton":
        return dense.kept_kernel(weight, *samples, plan, key)
    return dense.kernel(weight, *samples, channels_last=True)


def _of_part(
    x_samples: Tensor, h_samples: Tensor, plan: Plan, part: Part, group: int, separated: bool
) -> tuple[Tensor, Tensor]:
    """Return samples (A_p, 1, *window, N_x), and the fields' coefficients in the blocks (A_p, 1, width, N_k)."""
    x_samples, h_samples, labels = x_samples[:, 0], h_samples[:, 0], plan.labels
    if len(plan.parts) > 1:
        x_samples, h_samples, labels = (t.index_select(0, part.members) for t in (x_samples, h_samples, labels))
    x_samples = crop(x_samples, 1, part.window)
    if separated:
        assert part.basis is not None
        x_samples = torch.einsum("ayr,ay...->ar...", part.basis.to(x_samples.dtype), x_samples)
    lines = part.tables[group - 1].fields
    lines = lines.repeat_interleave(group, 0) if group > 1 else lines  # (A_p, width)
    chosen = (lines[:, :, None] == labels[:, None, :]).to(x_samples.dtype)  # (A_p, width, N_k)
    if plan.rows is None:
        chosen = chosen * h_samples.gather(1, lines[..., None].expand_as(chosen))
    return x_samples[:, None], chosen[:, None]


def _rows(h_samples: Tensor, rows: Tensor) -> Tensor:
    """Return the rows (R, N_in) of h_samples (A, 1, N_in, N_k) that differ."""
    return h_samples[:, 0].transpose(1, 2).flatten(0, 1).index_select(0, rows)


def _mixer(h_samples: Tensor, rows: Tensor, wide: int, dtype: torch.dtype) -> Tensor:
    """Return these rows (R, N_in), or for fields that lie innermost, `wide` channels each, (R·C, N_in·C).

    Products with zeros cost less than a product for each sample.
    """
    found = _rows(h_samples, rows).to(dtype)
    return torch.kron(found, torch.eye(wide, device=found.device, dtype=dtype)) if wide else found


def _mix(x: Tensor, rows: Tensor) -> Tensor:
    # (R, N_in) applied along H of (B, C, N_in, *space), as matrix products over whichever axes lie innermost.
    if hopper.innermost(x):
        mixed = F.linear(x.movedim((2, 1), (-2, -1)).flatten(-2), rows)
        return mixed.unflatten(-1, (-1, x.shape[1])).movedim((-2, -1), (2, 1))
    if x.stride(1) == 1:
        last = x.movedim(1, -1)  # (B, N_in, *space, C)
        return torch.matmul(rows, last.flatten(2)).view(x.shape[0], -1, *last.shape[2:]).movedim(-1, 1)
    planes = x.flatten(3) if x.ndim > 3 else x[..., None]
    return torch.matmul(rows, planes).view(*x.shape[:2], -1, *x.shape[3:])


def _at_once(fields: Tensor, kernel: Tensor, groups: int) -> int:
    """How many groups one call convolves: all on a GPU, as many as stay near each other in memory on a CPU."""
    if fields.is_cuda or kernel.ndim == 4:
        return groups
    if kernel.ndim == 7 or math.prod(kernel.shape[4:]) > _WIDE:  # slow when grouped
        return 1
    return min(groups, max(1, _NEAR // (kernel.shape[2] * kernel.shape[3])))


def _convolve(x: Tensor, weight: Tensor, groups: int, stride: Size, padding: Size) -> Tensor:
    match len(stride):
        case 0:
            inputs = x.view(-1, groups, weight.shape[1])
            return torch.einsum("bgi,goi->bgo", inputs, weight.view(groups, -1, weight.shape[1])).flatten(1)
        case 1:  # a second axis, since only images have a channels-last layout
            x, weight = x[:, :, None], weight[:, :, None]
            return F.conv2d(x, weight, None, (1, *stride), (0, *padding), groups=groups)[:, :, 0]
        case 2:
            if not x.is_cuda and math.prod(weight.shape[2:]) > _WIDE:
                x, weight = x.contiguous(), weight.contiguous()
            return F.conv2d(x, weight, None, stride, padding, groups=groups)
        case _:
            return cudnn.volumes(x, weight, stride, padding, groups)
