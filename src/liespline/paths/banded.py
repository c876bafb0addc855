"""The banded path: pick or mix the fields each output element needs, then correlate in space alone."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from liespline.paths import dense
from liespline.paths.plan import Plan, Route, Table

Size = tuple[int, ...]
Gathered = Callable[[Tensor, Tensor, Table, Size, Size], Tensor]


def correlate(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    h_samples: Tensor,
    plan: Plan,
    route: Route,
    stride: Size,
    padding: Size,
    gathered: Gathered,
) -> Tensor:
    """Sum over the fields that count: out_a = Σ_f K[a,f] ⋆ field_f, cost A·N_k rather than A·N_in.

    `gathered` does the correlation itself, with the arguments and the result of `grouped` below.
    """
    dtype = dense.accumulate_dtype(x, weight, x_samples, h_samples)
    with torch.autocast(x.device.type, enabled=False):
        h_samples = h_samples[:, 0].to(dtype)  # (A, N_in, N_k)
        coefficients = plan.chosen.to(dtype) if route.mixed else h_samples
        kernels = [
            _blocks(weight.to(dtype), x_samples[:, 0].to(dtype), coefficients, plan, route, part)
            for part in range(len(plan.windows))
        ]
        rows = h_samples.transpose(1, 2).flatten(0, 1).index_select(0, plan.rows)  # (R, N_in)
    fields = _mix(x, rows) if route.mixed else x
    largest = tuple(x_samples.shape[2:-1])
    parts = []
    for part, (window, kernel) in enumerate(zip(plan.windows, kernels, strict=True)):
        near, border = dense.fit(fields, largest, window, padding)
        parts.append(gathered(near, kernel.to(x.dtype), plan.table(route, part), stride, border))
    if len(parts) == 1:
        return parts[0]
    out = torch.cat(parts, dim=2)
    return out if plan.in_order else out.index_select(2, plan.order)


def grouped(fields: Tensor, kernel: Tensor, table: Table, stride: Size, padding: Size) -> Tensor:
    """Correlate gathered fields by one grouped convolution, channels last.

    out[:,o,g·G+e] = Σ_fc kernel[o,g·G+e,c,f] ⋆ fields[:,c,table.fields[g,f]], with G = A / groups

    fields (B, C, R, *space), kernel (O, A, C, width, *W) -> (B, O, A, *space).
    """
    groups = table.fields.shape[0]
    picked = fields.movedim((2, 1), (-2, -1)).index_select(-2, table.fields.flatten())
    picked = picked.flatten(-2).movedim(-1, 1)  # (B, groups·width·C, *space)
    blocks = kernel.permute(1, 0, *range(4, kernel.ndim), 3, 2)  # (A, O, *W, width, C)
    blocks = blocks.flatten(-2).flatten(0, 1).movedim(-1, 1)  # (A·O, width·C, *W)
    match len(stride):
        case 0:
            inputs = picked.view(-1, groups, blocks.shape[1])
            out = torch.einsum("bgi,goi->bgo", inputs, blocks.view(groups, -1, blocks.shape[1])).flatten(1)
        case 1:  # a second axis, since only images have a channels-last layout
            out = F.conv2d(picked[:, :, None], blocks[:, :, None], None, (1, *stride), (0, *padding), groups=groups)[
                :, :, 0
            ]
        case 2:
            out = F.conv2d(picked, blocks, None, stride, padding, groups=groups)
        case _:  # oneDNN's grouped volumes are slow: one convolution a group
            pairs = zip(picked.chunk(groups, 1), blocks.chunk(groups, 0), strict=True)
            out = torch.cat([F.conv3d(part, block, None, stride, padding) for part, block in pairs], dim=1)
    return out.view(out.shape[0], kernel.shape[1], kernel.shape[0], *out.shape[2:]).transpose(1, 2)


def _blocks(weight: Tensor, x_samples: Tensor, coefficients: Tensor, plan: Plan, route: Route, part: int) -> Tensor:
    """The kernel's blocks on a part's fields: (O, A_p, C, width, *window)."""
    table = plan.table(route, part).fields
    if len(plan.windows) > 1:
        members = plan.members(part)
        coefficients, x_samples = coefficients.index_select(0, members), x_samples.index_select(0, members)
    x_samples = dense.crop(x_samples, 1, plan.windows[part])
    lines = table.repeat_interleave(route.group, 0)[..., None].expand(-1, -1, coefficients.shape[2])
    return dense.kernel(weight, x_samples[:, None], coefficients.gather(1, lines)[:, None])


def _mix(x: Tensor, rows: Tensor) -> Tensor:
    # (R, N_in) applied along H of (B, C, N_in, *space), as matrix products over whichever axes lie innermost.
    rows = rows.to(x.dtype)
    if x.stride(1) == 1:
        last = x.movedim(1, -1)  # (B, N_in, *space, C)
        return torch.matmul(rows, last.flatten(2)).view(len(x), -1, *last.shape[2:]).movedim(-1, 1)
    planes = x.flatten(3) if x.ndim > 3 else x[..., None]
    return torch.matmul(rows, planes).view(*x.shape[:2], -1, *x.shape[3:])
