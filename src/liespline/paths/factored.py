"""A kernel on H as few blocks: pick or mix the fields each output element needs, then correlate them in space."""

import torch
from torch import Tensor

from liespline.paths import banded, dense, separable, triton, windows
from liespline.paths.choice import Choice
from liespline.paths.plan import Plan, Route

Size = tuple[int, ...]


def correlate(
    x: Tensor,
    weight: Tensor,
    x_samples: Tensor,
    h_samples: Tensor,
    plan: Plan,
    choice: Choice,
    stride: Size,
    padding: Size,
) -> Tensor:
    """Sum over the fields that count: out_a = Σ_f K[a,f] ⋆ field_f, cost A·N_k rather than A·N_in.

    The arguments of `paths.correlate`, and what was chosen for each of the plan's parts.
    """
    route = choice.route
    dtype = dense.accumulate_dtype(x, weight, x_samples, h_samples)
    with torch.autocast(x.device.type, enabled=False):
        h_samples = h_samples[:, 0].to(dtype)  # (A, N_in, N_k)
        coefficients = plan.chosen.to(dtype) if route.mixed else h_samples
        kernels = [
            _blocks(weight.to(dtype), x_samples[:, 0].to(dtype), coefficients, plan, route, part, method)
            for part, method in enumerate(choice.methods)
        ]
        rows = h_samples.transpose(1, 2).flatten(0, 1).index_select(0, plan.rows) if route.mixed else None
    fields = x if rows is None else _mix(x, rows)  # (B, C, R, *space)
    parts = []
    for part, (method, kernel) in enumerate(zip(choice.methods, kernels, strict=True)):
        near, border = windows.fit(fields, tuple(x_samples.shape[2:-1]), plan.windows[part], padding)
        table, kernel = plan.table(route, part), kernel.to(x.dtype)
        match method:
            case "separable":
                parts.append(separable.correlate(near, kernel, table, plan.basis(part), stride, border))
            case "triton":
                parts.append(triton.gathered(near, kernel, table, stride, border))
            case _:
                parts.append(banded.grouped(near, kernel, table, stride, border))
    if len(parts) == 1:
        return parts[0]
    out = torch.cat(parts, dim=2)
    return out if plan.in_order else out.index_select(2, plan.order)


def _blocks(
    weight: Tensor,
    x_samples: Tensor,
    coefficients: Tensor,
    plan: Plan,
    route: Route,
    part: int,
    method: str,
) -> Tensor:
    """The kernel's blocks on a part's fields: (O, A_p, C, width, *window), the first axis reduced if separable."""
    if len(plan.windows) > 1:
        members = plan.members(part)
        coefficients, x_samples = coefficients.index_select(0, members), x_samples.index_select(0, members)
    x_samples = windows.crop(x_samples, 1, plan.windows[part])
    if method == "separable":
        x_samples = separable.project(x_samples, plan.basis(part).to(x_samples.dtype))
    lines = plan.table(route, part).fields
    lines = lines.repeat_interleave(route.group, 0) if route.group > 1 else lines
    lines = lines[..., None].expand(-1, -1, coefficients.shape[2])
    return dense.kernel(weight, x_samples[:, None], coefficients.gather(1, lines)[:, None], channels_last=True)


def _mix(x: Tensor, rows: Tensor) -> Tensor:
    # (R, N_in) applied along H of (B, C, N_in, *space), as matrix products over whichever axes lie innermost.
    rows = rows.to(x.dtype)
    if x.stride(1) == 1:
        last = x.movedim(1, -1)  # (B, N_in, *space, C)
        return torch.matmul(rows, last.flatten(2)).view(len(x), -1, *last.shape[2:]).movedim(-1, 1)
    planes = x.flatten(3) if x.ndim > 3 else x[..., None]
    return torch.matmul(rows, planes).view(*x.shape[:2], -1, *x.shape[3:])
